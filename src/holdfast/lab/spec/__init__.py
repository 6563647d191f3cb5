"""The published specification of Kafka's replication, explored by our own engine.

`hachikuji/kafka-specification` describes replication as a small abstract machine: no messages, time
or disks, only who believes what. Five variants of its rules are here, and the search must come to
the verdicts and counts of TLC exactly. That is how we know that an engine which says "holds" has
looked everywhere. The machine is written anew; it needs numpy (the extra `search`).
"""

from holdfast.lab.spec.bounds import Bounds
from holdfast.lab.spec.explore import Coverage, Exploration, Question, explore
from holdfast.lab.spec.invariants import INVARIANTS
from holdfast.lab.spec.state import Record, ReplicaState, Request, State
from holdfast.lab.spec.telling import step_dict, tell
from holdfast.lab.spec.trace import Step
from holdfast.lab.spec.variants import FENCES, VARIANTS

__all__ = [
    "FENCES",
    "INVARIANTS",
    "VARIANTS",
    "Bounds",
    "Coverage",
    "Exploration",
    "Question",
    "Record",
    "ReplicaState",
    "Request",
    "State",
    "Step",
    "explore",
    "step_dict",
    "tell",
]
