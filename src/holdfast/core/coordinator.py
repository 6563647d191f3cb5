"""The state machine of a coordinator (groups; later transactions), as its driver sees it.

A broker coordinates what the partitions of an internal topic store. It has one state machine for
each of these partitions that it leads, in one leader epoch. A driver's duties:

- becoming leader: create the state machine; pass every record of the log, in order, to `replay`
  (leave out control batches and records that cannot be decoded, and report the latter). When all of
  them are committed, call `loaded`.
- a request: call the state machine's method for it, and carry out the effects in order.
- `Persist`: append the records, as one batch or several in a row, in the order of the effects, as
  acks=all would. Then call `persisted(token, error)`: NONE once the high watermark has passed them,
  the error if they were refused. NONE for one token says the same of all earlier ones that were not
  refused. An error of `MAY_STILL_COMMIT` only answers the waiters: the records are in the log, so
  call again when the high watermark passes them.
- time: call `tick` when `next_deadline_ms` has come; calling it earlier or more often is harmless.
- losing the leadership: call `unload`, and drop the object. Writes in flight need no further call.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from holdfast.model import ErrorCode

MAY_STILL_COMMIT: Final = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)
"""Errors of a write whose records are in the log."""

Record = TypeVar("Record")


class Persist(NamedTuple, Generic[Record]):
    """Write these records, wait until they are committed, then call `persisted`."""

    token: int
    records: tuple[Record, ...]


class Phase(Enum):
    """The state of a coordinator shard. The value is the error for every request."""

    LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    ACTIVE = ErrorCode.NONE
    GONE = ErrorCode.NOT_COORDINATOR


class CoordinatorState(Protocol):
    """The state machine of one partition. An effect is a `Persist` or of the machine's own kind."""

    phase: Phase

    def replay(self, record: Any) -> str | None:
        """Apply a record from the log. An invalid one changes nothing; return why."""

    def loaded(self, now_ms: int) -> Sequence[object]:
        """All records have been replayed, and they are committed."""

    def persisted(self, token: int, error: ErrorCode, now_ms: int) -> Sequence[object]:
        """The result of a `Persist`."""

    def next_deadline_ms(self) -> int | None:
        """When to call `tick` next; None without any deadline."""

    def tick(self, now_ms: int) -> Sequence[object]:
        """Time has passed."""

    def unload(self) -> Sequence[object]:
        """Another broker leads the partition: answer every waiter with NOT_COORDINATOR."""
