"""Clients under random faults: what `holdfast chaos` does before it checks.

`schedule` draws the faults from one seed, `fault_injection` carries them out, `senders` and
`readers` are the clients, and `run` runs everything and returns what is to be checked.
"""

from holdfast.cluster.chaos.run import Ground, Happened, Plan, play
from holdfast.cluster.chaos.schedule import KINDS, UNSAFE_KINDS, Limits, Phase, phases

__all__ = [
    "KINDS",
    "UNSAFE_KINDS",
    "Ground",
    "Happened",
    "Limits",
    "Phase",
    "Plan",
    "phases",
    "play",
]
