"""One fetch session: its partitions, and which of them have pending updates (KIP-227).

A session remembers its partitions, so a request names only what changed and an answer holds only
partitions with updates. The cost depends on the partitions that change, not on the idle ones: a
partition notifies its sessions when it has grown (`grew`) or when its high watermark has moved
(`moved`), and an answer looks at no others. A request without a session is a session that lasts for
one answer.

The driver's duties:

- a request: `FetchSessions.find`; answer the request that is parked, if there is one; `requested`.
  For each returned reader, find its partition (`meet`) and, for a follower, call `fetched`.
- nothing to send yet: `park`. An answer: `take_pending`, and for each reader `answered`.
- a partition has changed: `grew`, `moved`, `isr_changed` or `removed`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

from holdfast.core.replica.leader import Leader
from holdfast.core.replica.replica import Replica
from holdfast.core.replica.truncation import Fetch, FetchAnswer
from holdfast.model import BrokerEpoch, BrokerId

NO_SESSION: Final = 0
NEVER_MS: Final = 1 << 62
"""The deadline of a parked fetch: a driver has its own timer for the whole request."""

Place = tuple[str | bytes, int]
"""A partition: the name or the id of its topic, and its index."""
Asked = tuple[Place, Fetch, int, int]
"""A partition of a request: place, position, the follower's log start offset, limit in bytes."""


class FetchedPartition(Protocol):
    """A partition, as a driver keeps it."""

    replica: Replica
    sessions: dict[FetchSession[Any], Reader[Any]]
    """The sessions that read this partition."""


class ParkedRequest(Protocol):
    """A driver's request that waits for updates."""

    def wake(self) -> None:
        """Check soon, not within this call, whether there is enough to send."""

    def finish(self) -> None:
        """Answer with what is available."""


P = TypeVar("P", bound=FetchedPartition)


class Reader(Generic[P]):
    """One partition as one session reads it."""

    __slots__ = ("answered", "fetch", "log_start_offset", "max_bytes", "partition", "place")

    answered: tuple[int, int] | None
    """High watermark and log start in the client's newest answer. None: it needs them again."""
    fetch: Fetch
    """The position in the newest request that named it."""
    log_start_offset: int
    """A follower's own, for DeleteRecords."""
    max_bytes: int
    partition: P | None
    """The partition on this broker, once it is found."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.answered = None
        self.partition = None


class FetchSession(Generic[P]):
    """The partitions that one client reads."""

    __slots__ = (
        "broker_epoch",
        "epoch",
        "follower",
        "id",
        "is_new",
        "last_request_ms",
        "outsiders",
        "parked",
        "pending",
        "readers",
        "served",
    )

    is_new: bool
    """The session has just got its first partitions. The answer names every one and does not wait,
    so that the client has the session's state."""
    last_request_ms: int
    """-1 before the first request."""
    pending: dict[Reader[P], None]
    """Partitions with pending updates, in order of fairness: a served one goes to the end."""
    outsiders: dict[Reader[P], None]
    """Partitions whose ISR this follower is not in. Every request counts as a fetch of these, named
    or not: the follower may have reached the high watermark while another proposal was in flight,
    and would have no reason to name them again."""
    parked: ParkedRequest | None
    """The request that waits for updates, if one does."""
    served: list[Reader[P]]
    """Partitions with records in a consumer's last answer. The client has discarded the records of
    a partition that its next request omits, for example in a rebalance: send them again. A follower
    has sent its next request by then, and names every partition that it wants."""

    def __init__(self, identity: int, follower: BrokerId | None) -> None:
        self.id = identity
        self.epoch = 1
        self.follower = follower
        self.broker_epoch = BrokerEpoch(-1)
        self.readers: dict[Place, Reader[P]] = {}
        self.is_new = False
        self.pending = {}
        self.outsiders = {}
        self.parked = None
        self.served = []
        self.last_request_ms = -1

    # Requests.

    def requested(
        self,
        named: Iterable[Asked],
        forgotten: Iterable[Place],
        broker_epoch: BrokerEpoch,
        now_ms: int,
        *,
        overtakes: bool,
    ) -> list[Reader[P]]:
        """Apply a request; returns the readers whose position it reports.

        A partition that it both names and forgets is removed. A request that opens a session, or
        has none, removes nothing. `overtakes`: another request was parked when it arrived.
        """
        if not overtakes:
            self._serve_again()
        opens = self.last_request_ms < 0
        self.last_request_ms, self.broker_epoch = now_ms, broker_epoch
        self.is_new = self.id != NO_SESSION and not self.readers
        repeats = self._discards_older_answers(overtakes=overtakes)
        reported: dict[Reader[P], None] = {}
        for place, fetch, log_start_offset, max_bytes in named:
            reader = self.readers.get(place)
            if reader is None:
                reader = self.readers[place] = Reader(place)
            elif repeats:
                reader.answered = None
            reader.fetch, reader.max_bytes = fetch, max_bytes
            reader.log_start_offset = log_start_offset
            self.pending[reader] = reported[reader] = None
        for place in () if opens else forgotten:
            gone = self.readers.pop(place, None)
            if gone is not None:
                self._leave(gone)
                reported.pop(gone, None)
        if not self.outsiders:
            return list(reported)
        return [*(one for one in self.outsiders if one not in reported), *reported]

    def _discards_older_answers(self, *, overtakes: bool) -> bool:
        """Whether the client discards older answers for the partitions that it names.

        It has asked again. So repeat what those answers contained, for example a high watermark.
        """
        return overtakes or self.follower is not None

    def _serve_again(self) -> None:
        """The positions of partitions that this request omits have not moved."""
        if self.served:
            again = (one for one in self.served if one.partition is not None)
            self.pending.update(dict.fromkeys(again))
            self.served = []

    def meet(self, reader: Reader[P], partition: P) -> None:
        """A reader without a partition has found it."""
        reader.partition = partition
        partition.sessions[self] = reader

    def fetched(self, reader: Reader[P], partition: P) -> FetchAnswer:
        """Report a follower's position to its replica. The driver carries out the effects."""
        if reader.fetch.broker_epoch != self.broker_epoch:
            reader.fetch = reader.fetch._replace(broker_epoch=self.broker_epoch)
        replica = partition.replica
        answer = replica.fetched(reader.fetch, self.last_request_ms)
        role = replica.role
        if isinstance(role, Leader):
            self.isr_changed(reader, role.insync.isr)
        return answer

    # Answers.

    def park(self, request: ParkedRequest) -> None:
        """Nothing to send: a partition that grows wakes the request."""
        self.parked = request
        for reader in self.pending:
            self._park_at(reader)

    def _park_at(self, reader: Reader[P]) -> None:
        if reader.partition is not None:
            replica = reader.partition.replica
            replica.park_fetch(self, NEVER_MS, at_end=self.follower is not None)

    def take_pending(self) -> dict[Reader[P], None]:
        """The partitions to put into an answer, in order."""
        pending, self.pending = self.pending, {}
        return pending

    def answered(
        self,
        reader: Reader[P],
        offsets: tuple[int, int],
        size: int,
        *,
        is_refused: bool,
        is_all: bool,
    ) -> bool:
        """One partition's part of an answer is ready; returns whether the answer names it.

        `offsets`: high watermark and log start. `size`: bytes of records. `is_refused`: it has an
        error or a diverging epoch. `is_all`: no records are left out.
        """
        lasts = self.id != NO_SESSION
        is_named = is_refused or size > 0 or not lasts or offsets != reader.answered
        reader.answered = offsets
        if is_refused or not is_all:
            self.pending[reader] = None  # It comes first in the next answer.
        elif size:
            self._was_served(reader)
        elif lasts:
            self._park_at(reader)
        return is_named

    def _was_served(self, reader: Reader[P]) -> None:
        if self.follower is None:
            self.served.append(reader)

    # Changes of partitions.

    def grew(self, partition: P, now_ms: int) -> None:
        """A partition has something to send, or no longer leads."""
        reader = partition.sessions.get(self)
        if reader is None:
            return
        self.pending[reader] = None
        parked = self.parked
        if self.follower is not None:
            at_ms = now_ms if parked is not None else self.last_request_ms
            partition.replica.still_caught_up(self.follower, at_ms)
        if parked is not None:
            parked.wake()

    def moved(self, reader: Reader[P]) -> None:
        """High watermark or log start: sent with the next answer, but it wakes no request."""
        self.pending[reader] = None

    def isr_changed(self, reader: Reader[P], isr: tuple[BrokerId, ...]) -> None:
        """The ISR of a partition has changed."""
        if self.follower is None or self.follower in isr:
            self.outsiders.pop(reader, None)
        else:
            self.outsiders[reader] = None

    def removed(self, partition: P) -> None:
        """The partition has left this broker."""
        reader = partition.sessions.get(self)
        if reader is not None:
            self._leave(reader)
            self.pending[reader] = None
            if self.parked is not None:
                self.parked.wake()

    def _leave(self, reader: Reader[P]) -> None:
        self.pending.pop(reader, None)
        self.outsiders.pop(reader, None)
        partition = reader.partition
        if partition is not None:
            partition.sessions.pop(self, None)
            partition.replica.unpark_fetch(self)
            reader.partition = None

    def close(self) -> None:
        """Remove the session from its partitions."""
        for reader in self.readers.values():
            self._leave(reader)
        self.readers.clear()
        self.parked = None
