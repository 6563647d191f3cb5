"""Log directories of Holdfast or Apache Kafka as Spark tables, also while a broker writes them.

    from holdfast.pipeline import logs
    logs.register(spark)
    spark.read.format("holdfast-log").load("b1=DIR,b2=DIR")

It locks, repairs and writes nothing. Damage is a row, not a failure.
"""

from pyspark.sql import SparkSession

from holdfast.pipeline.logs.source import BatchSource, LogSource
from holdfast.pipeline.logs.splits import parse_paths

__all__ = ["parse_paths", "register"]


def register(spark: SparkSession) -> None:
    """Make `holdfast-log` and `holdfast-batches` known to a session."""
    spark.dataSource.register(LogSource)
    spark.dataSource.register(BatchSource)
