"""Explores the published specification of Kafka's replication with Holdfast's own engine.

`hachikuji/kafka-specification` describes replication as a small abstract machine without messages,
time or disks: only the state of each replica and the requests of the controller. This package has
five variants of its rules, and the search must reach exactly the verdicts and counts of TLC. That
shows that the engine visits every state before it reports "holds". The package is an independent
implementation; it needs numpy (the extra `search`).
"""

from holdfast.search.limits import Coverage
from holdfast.search.spec.bounds import Bounds
from holdfast.search.spec.explore import Exploration, Question, explore
from holdfast.search.spec.invariants import INVARIANTS
from holdfast.search.spec.sentences import render_trace, step_dict
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
    "render_trace",
    "step_dict",
]
