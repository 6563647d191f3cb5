"""Spark as Holdfast runs it: one session, its jars and its Java, quiet and offline.

Nothing here imports pyspark before a session is created, so a missing extra is reported in one line
and `--help` stays quick.
"""

from holdfast.pipeline.spark.session import QUICK, running, session

__all__ = ["QUICK", "running", "session"]
