"""The published specification of Kafka's replication, explored by our own engine.

`hachikuji/kafka-specification` describes replication as a small abstract machine: no messages, time
or disks, only who believes what. Five variants of its rules are here, and the search must come to
the verdicts and counts of TLC exactly. That is how we know that an engine which says "holds" has
looked everywhere. The machine is written anew; it needs numpy (the extra `search`).
"""

from holdfast.search.spec.bounds import Bounds
from holdfast.search.spec.explore import Coverage, Exploration, Question, explore
from holdfast.search.spec.invariants import INVARIANTS
from holdfast.search.spec.sentences import step_dict, render_trace
from holdfast.search.spec.state import Record, ReplicaState, Request, State
from holdfast.search.spec.trace import Step
from holdfast.search.spec.variants import FENCES, VARIANTS

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
    "render_trace",
]
