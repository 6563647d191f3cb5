"""Spark: topics into a lake table exactly once, and the proof that nothing acknowledged was lost.

The only room that imports pyspark. Packages: `spark` (a session, its jars, its Java, its failures),
`ingest` (topics into Delta), `logs` (log directories as a table), `audit` (what became of every
record that a producer was promised).
"""

from holdfast.pipeline.errors import PipelineError

__all__ = ["PipelineError"]
