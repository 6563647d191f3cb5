"""Why a finding is there, and which setting would have prevented it: from traces and checkpoints.

How it is done is told in docs/causes.md.
"""

from holdfast.pipeline.audit.causes.explain import explain
from holdfast.pipeline.audit.causes.faults import faults
from holdfast.pipeline.audit.causes.kinds import HEADLINES
from holdfast.pipeline.audit.causes.partition_history import Past

__all__ = ["HEADLINES", "Past", "explain", "faults"]
