"""Why a finding is there: from traces, else from leader-epoch checkpoints; and what would have kept it.

How it is done is told in docs/causes.md.
"""

from holdfast.pipeline.audit.causes.explaining import explain
from holdfast.pipeline.audit.causes.kinds import HEADLINES

__all__ = ["HEADLINES", "explain"]
