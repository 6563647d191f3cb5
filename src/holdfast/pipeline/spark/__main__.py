"""`python -m holdfast.pipeline.spark`: fetches what a session needs; then it works offline."""

import sys

from holdfast.pipeline.errors import PipelineError
from holdfast.pipeline.spark import jars
from holdfast.pipeline.spark.java import java_home
from holdfast.pipeline.spark.session import require_pyspark


def main() -> int:
    """Silent if everything exists."""
    try:
        require_pyspark()
        java_home()
        if jars.missing(jars.folder()):
            sys.stderr.write(f"spark: the Kafka connector and Delta Lake into {jars.folder()}\n")
            jars.fetch()
    except PipelineError as error:
        hint = "" if error.hint is None else f" ({error.hint})"
        sys.stderr.write(f"holdfast: {error.message}{hint}\n")
        return 64
    return 0


if __name__ == "__main__":
    sys.exit(main())
