"""One unpacked state of the specification, for people and tests."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.search.spec.layout import Field, Layout, States


@dataclass(frozen=True, slots=True, order=True)
class Record:
    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ReplicaState:
    log: tuple[Record, ...]
    high_watermark: int
    epoch: int | None
    leader: int | None
    """The leader in this replica's view: perhaps itself."""
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A LeaderAndIsr request. Its index is its epoch."""

    leader: int | None
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class State:
    replicas: tuple[ReplicaState, ...]
    requests: tuple[Request, ...]
    """All requests that the controller has sent. The last one has the current leader."""
    agreed_isr: tuple[int, ...]
    next_record: int


def unpack(layout: Layout, states: States, index: int = 0) -> State:
    """Unpack one of many states."""

    def value(field: Field) -> int:
        return int(states[field.word, index]) >> field.shift & field.mask

    def members(field: Field) -> tuple[int, ...]:
        isr = value(field)
        return tuple(one for one in range(layout.bounds.replicas) if isr >> one & 1)

    requests = tuple(
        Request(_number(value(layout.request_leader[epoch])), members(layout.request_isr[epoch]))
        for epoch in range(value(layout.next_epoch))
    )
    replicas = []
    for replica in range(layout.bounds.replicas):
        epoch = _number(value(layout.epoch[replica]))
        codes = (value(field) for field in layout.log[replica])
        replicas.append(
            ReplicaState(
                tuple(_record(code - 1, layout.bounds.epochs) for code in codes if code),
                value(layout.high_watermark[replica]),
                epoch,
                None if epoch is None else requests[epoch].leader,
                members(layout.isr[replica]),
            )
        )
    agreed_isr = members(layout.agreed_isr)
    return State(tuple(replicas), requests, agreed_isr, value(layout.next_record))


def _number(code: int) -> int | None:
    return code - 1 if code else None


def _record(code: int, epochs: int) -> Record:
    return Record(*divmod(code, epochs))
