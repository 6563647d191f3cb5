"""Reports when Spark has work and no executor for it.

Spark itself only writes that to its log and waits, perhaps for ever: a master whose cores are all
taken, or one without workers, looks like work that takes long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S: Final = 5.0
SAY_AFTER: Final = 3
"""The number of checks in a row without a running task."""
WORDS: Final = (
    "waiting: Spark has no free executor. Are there workers, and do others use all their "
    "cores or memory? (--conf spark.cores.max, spark.executor.memory)"
)


class WaitingForExecutors:
    """Checks now and then while a block runs."""

    def __init__(self, spark: SparkSession, say: Callable[[str], None]) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._say = say
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="executors", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(LOOK_S)  # It may wait for a Java that does not answer.

    def _run(self) -> None:
        from py4j.protocol import Py4JError

        looks = 0
        while not self._stop.wait(LOOK_S):
            try:
                looks = looks + 1 if self._is_waiting() else 0
            except (Py4JError, ConnectionError):
                return  # Java has ended; the block reports it
            if looks == SAY_AFTER:
                self._say(WORDS)

    def _is_waiting(self) -> bool:
        """Whether there are stages to run, and no task of any of them runs."""
        stages = [self._tracker.getStageInfo(one) for one in self._tracker.getActiveStageIds()]
        known = [one for one in stages if one is not None]
        return bool(known) and not any(one.numActiveTasks for one in known)
