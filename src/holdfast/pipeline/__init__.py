"""Spark: topics into a Delta table exactly once, and the proof that nothing acknowledged was lost.

Only this package imports pyspark. It has `spark` (a session, its jars, its Java, its failures),
`ingest` (topics into Delta), `logs` (log directories as a table) and `audit` (what became of every
acknowledged record).
"""

from holdfast.pipeline.errors import NoBrokerError, PipelineError

__all__ = ["NoBrokerError", "PipelineError"]
