"""The commands of scenario files: one handler, one usage line each.

A handler changes the world; what happens shows in the trace. Only a few (`state`, `logs`,
`verdict`, `latest`) have words of their own.
"""

from holdfast.lab.scenarios.commands import clients, cluster, faults, messages, show
from holdfast.lab.scenarios.commands.registry import HANDLERS, CommandError, Handler, Stage

__all__ = [
    "HANDLERS",
    "CommandError",
    "Handler",
    "Stage",
    "clients",
    "cluster",
    "faults",
    "messages",
    "show",
]
