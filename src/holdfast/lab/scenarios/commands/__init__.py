"""The commands of scenario files: one handler and one usage line per command.

A handler changes the simulated world; the trace shows the effects. Only a few commands (`state`,
`logs`, `verdict`, `latest`) print lines themselves.
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
