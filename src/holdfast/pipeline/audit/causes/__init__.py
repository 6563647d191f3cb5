"""Causes of findings, and the setting that would have prevented each: from traces and checkpoints.

docs/causes.md describes the method.
"""

from holdfast.pipeline.audit.causes.explain import explain
from holdfast.pipeline.audit.causes.faults import faults
from holdfast.pipeline.audit.causes.kinds import HEADLINES
from holdfast.pipeline.audit.causes.partition_history import Past

__all__ = ["HEADLINES", "Past", "explain", "faults"]
