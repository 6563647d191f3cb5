"""Every failure of Spark as one readable cause; the stack trace stays in the log."""

from __future__ import annotations

from holdfast.pipeline.errors import PipelineError
from holdfast.pipeline.spark.scratch import keep_log


def told(error: BaseException, what: str) -> PipelineError:
    """`what` says in a few words what was to be done."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return PipelineError(f"{what}: {first}", hint=f"Spark's log: {keep_log()}")
