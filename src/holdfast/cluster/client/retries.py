"""Repeats a request while the cluster changes, with fresh metadata, until a deadline.

Metadata may name a leader or a controller that has just died, and a broker may disappear between
two requests. That says nothing about the cluster's records, so every request that needs a certain
broker goes through `retried`, and each attempt looks up the broker again. An error that no retry
changes is raised immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeVar

from holdfast.cluster.client.client import KafkaError, UnansweredError, UnreachableError
from holdfast.cluster.waiting import wait_for
from holdfast.model import ErrorCode

T = TypeVar("T")

MOVED: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""The broker does not lead the partition, or has no metadata of it yet. It has appended nothing."""
NOT_KNOWN_YET: Final = (*MOVED, ErrorCode.OFFSET_NOT_AVAILABLE)


def retried(
    attempt: Callable[[], T],
    timeout_s: float,
    *,
    codes: Collection[ErrorCode] = (),
    repeatable: bool = True,
) -> T:
    """The first answer. ClusterTimeoutError names the last failure.

    `codes`: the errors that are worth another attempt. A request that is not `repeatable` is not
    sent again after its answer was lost: it may have been carried out.
    """
    last = [""]

    def look() -> tuple[T] | None:
        try:
            return (attempt(),)
        except KafkaError as error:
            if error.code not in codes:
                raise
            last[0] = error.message
        except UnreachableError as error:
            if isinstance(error, UnansweredError) and not repeatable:
                raise
            last[0] = error.message
        return None

    return wait_for(look, timeout_s, lambda: last[0])[0]
