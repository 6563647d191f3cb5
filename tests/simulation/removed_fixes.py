"""The fixes of bugs that kept seeds found; each of them can be removed.

`tests/simulation/test_kept_seeds.py` uses them to show that a kept seed still finds its bug.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import pytest

from holdfast import storage
from holdfast.broker.replication import partition, replicas
from holdfast.core import FetchSession, Reader, Replica, SequenceGapGuard
from holdfast.lab import build
from holdfast.storage import LogOfflineError, log_directory
from holdfast.storage.checkpoints import meta_properties
from holdfast.storage.producers import replay


class UncaughtError(Exception):
    """A disk error in a place that does not handle it."""


def uncaught(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, with an OSError that no caller catches."""

    def failing(*args: Any, **options: Any) -> Any:
        try:
            return call(*args, **options)
        except OSError as error:
            raise UncaughtError(str(error)) from error

    return failing


def early_acknowledgements(patch: pytest.MonkeyPatch) -> None:
    rules = build({"without": "(flush-before-claim)"}, 3)[1]
    patch.setattr(replicas, "Replica", partial(Replica, rules=rules))


def last_batch_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replay, "_recall", lambda *_: None)


def reads_that_fail_no_log(patch: pytest.MonkeyPatch) -> None:
    real = storage.read

    def read(log: Any, *args: Any) -> bytes:
        try:
            return real(log, *args)
        except LogOfflineError as offline:
            if log.offline is offline and isinstance(offline.__cause__, OSError):
                log.offline = None
                raise offline.__cause__ from None
            raise

    patch.setattr(partition, "read", read)


def stops_that_fail(patch: pytest.MonkeyPatch) -> None:
    close = log_directory.LogDirectory.close

    def failing_close(self: Any, *args: Any, **options: Any) -> bool:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(self, "write_checkpoints", uncaught(self.write_checkpoints))
            inner.setattr(log_directory, "write_clean_shutdown", mark)
            return close(self, *args, **options)

    mark = uncaught(meta_properties.write_clean_shutdown)
    patch.setattr(log_directory.LogDirectory, "close", failing_close)


def batches_that_overtake(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SequenceGapGuard, "is_out_of_order", lambda *_: False)


def followers_served_again(patch: pytest.MonkeyPatch) -> None:
    """Serve a follower again, but send the high watermark of a response only once."""

    def was_served(self: FetchSession[Any], reader: Reader[Any]) -> None:
        self.served.append(reader)

    def discards_older_answers(_: FetchSession[Any], *, overtakes: bool) -> bool:
        return overtakes

    patch.setattr(FetchSession, "_was_served", was_served)
    patch.setattr(FetchSession, "_discards_older_answers", discards_older_answers)


class RemovableFix(NamedTuple):
    """A fix, identified by a few words of its seed's reason."""

    reason: str
    remove: Callable[[pytest.MonkeyPatch], None]
    finds: str
    """A part of a failure's text when the fix is removed."""
    plan: Mapping[str, Any] = {}
    """Changes of the seed's plan, if the seed finds the bug only with more faults of fewer kinds.
    """


DENSE: Mapping[str, Any] = {"fault_every_ms": 150, "send_every_ms": 60}
FIXES = (
    RemovableFix(
        "a clean restart forgot",
        last_batch_only,
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        {**DENSE, "faults": ("stop",), "duration_ms": 40_000, "is_restarted": True},
    ),
    RemovableFix("a disk that could not be read left", reads_that_fail_no_log, "OSError"),
    RemovableFix(
        "could not write its checkpoints",
        stops_that_fail,
        "UncaughtError",
        {"faults": ("stop", "disk-error"), "fault_every_ms": 150, "duration_ms": 60_000},
    ),
    RemovableFix(
        "a producer's first batch",
        batches_that_overtake,
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        {
            "faults": ("kill", "slow", "torn-bytes"),
            "fault_every_ms": 60,
            "send_every_ms": 100,
            "latency_ms": 30.0,
            "duration_ms": 10_000,
        },
    ),
    RemovableFix(
        "threw away an answer",
        followers_served_again,
        "not at rest",
        {
            "faults": ("torn-bytes", "slow"),
            "fault_every_ms": 200,
            "send_every_ms": 400,
            "duration_ms": 15_000,
            "is_rebalancing": True,
        },
    ),
    RemovableFix(
        "flush.messages",
        early_acknowledgements,
        "what was committed",
        {
            "faults": ("power-loss",),
            "fault_every_ms": 1_000,
            "send_every_ms": 60,
            "flush_messages": 2,
            "disk_ms": 400.0,
            "duration_ms": 40_000,
        },
    ),
)
