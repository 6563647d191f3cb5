"""Spark as a pool of processes: a call is a job of one task, run by a free executor.

It suits work of many calls that take seconds each. If an executor dies, Spark runs its tasks again
on another one. Spark's Python workers survive between tasks, so a module's caches are available to
the next call.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from holdfast.pipeline.spark.ending import AGAIN_S, Interrupts
from holdfast.pipeline.spark.failures import readable_failure
from holdfast.pipeline.spark.session import QUICK, running

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def executors(
    app: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[SparkPool]:
    """A pool with a session of its own. Its Java only passes data on, and need not be fast.

    Ctrl-C within the block raises KeyboardInterrupt in the pool's calls and their results.
    """
    with (
        running(app, master=master, conf={**QUICK, **(conf or {})}, say=say) as spark,
        Interrupts(spark.sparkContext.cancelAllJobs) as interrupts,
        SparkPool(spark, interrupts) as pool,
    ):
        yield pool


class SparkPool(Executor):
    """The executors of a session; calls that still run when the pool ends are cancelled."""

    def __init__(self, spark: SparkSession, interrupts: Interrupts) -> None:
        self._context = spark.sparkContext
        self._interrupts = interrupts
        self.processes = self._context.defaultParallelism
        """How many calls run at a time."""
        # One more waits in Spark's own queue, so that no executor is idle.
        self._threads = ThreadPoolExecutor(self.processes + 1)
        self._under_way: set[Future[Any]] = set()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Pickles the call and its result; the function is found by its name."""
        self._interrupts.check()
        call = self._threads.submit(self._run, partial(fn, *args, **kwargs))
        self._under_way.add(call)
        call.add_done_callback(self._under_way.discard)
        return call

    def _run(self, call: Callable[[], T]) -> T:
        from py4j.protocol import Py4JError

        self._interrupts.check()
        context = self._context
        try:
            # Not within the task: Spark limits its size.
            sent = context.broadcast(pickle.dumps(call))
            (result,) = context.parallelize([0], 1).map(partial(_called, sent)).collect()
            sent.destroy()
        except (Py4JError, ConnectionError) as error:
            self._interrupts.check()
            raise readable_failure(error, "Spark could not go on") from error
        except Exception:
            self._interrupts.check()  # Java may have been killed within a result.
            raise
        found: T = pickle.loads(result)  # noqa: S301  # our own
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel everything that still runs."""
        from py4j.protocol import Py4JError

        del cancel_futures
        self._threads.shutdown(wait=False, cancel_futures=True)
        with suppress(Py4JError, OSError):
            self._context.cancelAllJobs()
            # A job that was on its way to Spark is cancelled in the next round.
            while wait and wait_for(self._under_way.copy(), AGAIN_S).not_done:
                self._context.cancelAllJobs()


def _called(sent: Broadcast[bytes], _place: int) -> bytes:
    call = pickle.loads(sent.value)  # noqa: S301  # our own
    return pickle.dumps(call())
