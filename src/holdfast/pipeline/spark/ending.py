"""Ends work on Spark: handles Ctrl-C, and kills a Java that does not answer.

Python raises KeyboardInterrupt wherever the main thread is. Within `concurrent.futures` that may be
after it took a lock and before it can release it; the threads of the pool then wait for that lock
for ever, and so does every thread that joins them. `Interrupts` therefore only notes Ctrl-C,
cancels Spark's jobs, and lets the calls of the pool raise KeyboardInterrupt.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AGAIN_S: Final = 0.5
"""How often jobs are cancelled: the first time misses a job that is still on its way to Spark."""
CANCEL_S: Final = 10.0
"""How long Spark may take to cancel jobs after Ctrl-C."""
STOP_S: Final = 60.0
"""How long Spark may take to stop."""


def stop(spark: SparkSession) -> None:
    """Stop a session; kill Java if it takes too long."""
    from py4j.protocol import Py4JError

    killer = threading.Timer(STOP_S, kill_java)
    killer.daemon = True
    killer.start()
    try:
        with suppress(Py4JError, OSError):  # Java may have ended; another error reports that
            spark.stop()
    finally:
        killer.cancel()


def kill_java() -> None:
    """End the Java process that we started; every call that waits for it then fails."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        process.kill()


class Interrupts:
    """Notes Ctrl-C for as long as a block runs, and cancels what runs on Spark.

    After the second Ctrl-C, or if the block has not ended after CANCEL_S, it kills Java.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._seen = False
        # A signal handler may put into this queue, whatever it interrupted.
        self._notes: SimpleQueue[bool] = SimpleQueue()
        """True: Ctrl-C. False: the block has ended."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="interrupts", daemon=True)

    def check(self) -> None:
        """KeyboardInterrupt if there was one. For places where no lock is held."""
        if self._seen:
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._is_main:  # only the main thread may set handlers
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            signal.signal(signal.SIGINT, self._before)
        self._ended.set()
        self._notes.put(False)
        self._thread.join()

    def _note(self, *_: object) -> None:
        self._seen = True
        self._notes.put(True)

    def _watch(self) -> None:
        if not self._notes.get():
            return
        # In another thread: a Java that hangs does not answer this call either.
        threading.Thread(target=self._keep_cancelling, name="cancelling", daemon=True).start()
        with suppress(Empty):
            if not self._notes.get(timeout=CANCEL_S):
                return
        kill_java()

    def _keep_cancelling(self) -> None:
        from py4j.protocol import Py4JError

        with suppress(Py4JError, OSError):  # Java has ended
            while not self._ended.is_set():
                self._cancel()
                self._ended.wait(AGAIN_S)
