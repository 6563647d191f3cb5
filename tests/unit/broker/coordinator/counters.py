"""A second coordinator, far smaller than groups: counters in an internal topic of their own.

It drives `CoordinatorShards` on the real partitions of simulated brokers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holdfast.broker.coordinator import CoordinatorKind, CoordinatorParts, CoordinatorShards
from holdfast.broker.node import Broker
from holdfast.core.coordinator import MAY_STILL_COMMIT, Persist, Phase
from holdfast.model import ErrorCode
from holdfast.protocol.coordinator_records import Skipped

TOPIC = "__counters"
EXPIRY_MS = 60_000
WRITE_TIMEOUT_MS = 5_000

Record = tuple[str, int | None]
"""A counter and its value; None removes it."""


class Answer(NamedTuple):
    """The response to `add`."""

    waiter: Callable[[Answer], None]
    error: ErrorCode
    value: int = 0


Effects = list[Persist[Record] | Answer]


class _Write(NamedTuple):
    record: Record
    waiter: Callable[[Answer], None] | None


class Counters:
    """The counters of one partition. One that is not used for EXPIRY_MS is removed."""

    def __init__(self) -> None:
        self.phase = Phase.LOADING
        self.values: dict[str, int] = {}
        """What is committed."""
        self._used_ms: dict[str, int] = {}
        self._writes: dict[int, _Write] = {}
        self._last_token = 0

    def replay(self, record: Record) -> str | None:
        key, value = record
        if value is not None and value < 0:
            return f"{key} counts down"
        self._apply(record)
        return None

    def _apply(self, record: Record) -> None:
        key, value = record
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def loaded(self, now_ms: int) -> Effects:
        self.phase = Phase.ACTIVE
        self._used_ms = dict.fromkeys(self.values, now_ms)
        return []

    def add(self, key: str, waiter: Callable[[Answer], None], now_ms: int) -> Effects:
        """Count one more."""
        if self.phase is not Phase.ACTIVE:
            return [Answer(waiter, self.phase.value)]
        self._used_ms[key] = now_ms
        in_flight = sum(write.record[0] == key for write in self._writes.values())
        return self._persist((key, self.values.get(key, 0) + in_flight + 1), waiter)

    def _persist(self, record: Record, waiter: Callable[[Answer], None] | None) -> Effects:
        self._last_token += 1
        self._writes[self._last_token] = _Write(record, waiter)
        return [Persist(self._last_token, (record,))]

    def persisted(self, token: int, error: ErrorCode, now_ms: int) -> Effects:
        assert self.phase is Phase.ACTIVE
        effects: Effects = []
        for each in [one for one in self._writes if one == token or (one < token and not error)]:
            record, waiter = self._writes.pop(each)
            if not error:
                self._apply(record)
            elif error in MAY_STILL_COMMIT:
                self._writes[each] = _Write(record, None)
            if waiter is not None:
                effects.append(Answer(waiter, error, self.values.get(record[0], 0)))
        return effects

    def next_deadline_ms(self) -> int | None:
        return min((used + EXPIRY_MS for used in self._used_ms.values()), default=None)

    def tick(self, now_ms: int) -> Effects:
        effects: Effects = []
        for key, used_ms in tuple(self._used_ms.items()):
            if used_ms + EXPIRY_MS <= now_ms:
                del self._used_ms[key]
                effects += self._persist((key, None), None)
        return effects

    def unload(self) -> Effects:
        self.phase = Phase.GONE
        writes, self._writes = self._writes, {}
        self._used_ms.clear()
        return [Answer(one.waiter, self.phase.value) for one in writes.values() if one.waiter]


def encode(record: Record) -> tuple[bytes, bytes | None]:
    key, value = record
    return key.encode(), None if value is None else str(value).encode()


def decode(key: object, value: object) -> Record | Skipped:
    assert isinstance(key, bytes | memoryview)
    if value is None:
        return bytes(key).decode(), None
    assert isinstance(value, bytes | memoryview)
    text = bytes(value).decode()
    return (bytes(key).decode(), int(text)) if text.lstrip("-").isdigit() else Skipped("no number")


def coordinator_on(broker: Broker) -> CoordinatorShards[Counters]:
    """Start to coordinate counters on a running broker."""
    parts = CoordinatorParts(
        broker.clock,
        broker.log,
        broker.replicas,
        broker.metadata,
        broker.auto_creation,
        lambda: broker.is_stopping,
    )
    kind = CoordinatorKind(
        topic=TOPIC,
        name="counters",
        new_state=Counters,
        encode=encode,
        decode=decode,
        carry_out=lambda answer: answer.waiter(answer),
        write_timeout_ms=lambda: WRITE_TIMEOUT_MS,
    )
    coordinator = CoordinatorShards(parts, kind)
    for name, partition in broker.replicas.partitions.items():
        if name.topic == TOPIC:
            coordinator.role_changed(partition)
    return coordinator
