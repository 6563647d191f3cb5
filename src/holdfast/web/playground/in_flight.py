"""Says in a few words what a message in flight contains."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core import FetchAnswer
from holdfast.lab.world.messages import (
    AlterRequest,
    AlterResponse,
    Envelope,
    FetchRequest,
    FetchResponse,
    Payload,
    ProduceRequest,
    ProduceResponse,
    ReadRequest,
    ReadResponse,
    Record,
    StateMessage,
)
from holdfast.lab.world.world import World
from holdfast.model import NO_BROKER, BrokerId


def content_of(envelope: Envelope, world: World) -> str:
    """The message's name, and the numbers that matter."""
    return (
        _of_replication(envelope.payload, world)
        or _of_records(envelope.payload)
        or (envelope.wire_name)
    )


def _of_records(payload: Payload) -> str:
    """The messages that carry records or ask for them."""
    match payload:
        case FetchRequest():
            return f"Fetch from {payload.asked.fetch_offset}"
        case ReadRequest():
            return f"Fetch from {payload.fetch_offset}"
        case FetchResponse() | ReadResponse():
            records = (record for batch in payload.batches for record in batch.records)
            return f"Fetch answer: {_answer(payload.answer, records)}"
        case ProduceRequest():
            return f"Produce {_labels(payload.records)}, acks={payload.acks}"
        case ProduceResponse():
            return f"Produce answer: {payload.error.name if payload.error else 'acknowledged'}"
        case _:
            return ""


def _of_replication(payload: Payload, world: World) -> str:
    """The messages about leaders and the ISR."""
    match payload:
        case StateMessage():
            state = payload.state
            leader = "nobody" if state.leader == NO_BROKER else world.name_of(state.leader)
            isr = _names(state.isr, world)
            return f"LeaderAndIsr: {leader} leads epoch {state.leader_epoch}, ISR {isr}"
        case AlterRequest():
            isr = _names((one.broker for one in payload.proposal.isr), world)
            return f"AlterPartition: ISR {isr}?"
        case AlterResponse():
            return f"AlterPartition answer: {payload.error.name if payload.error else 'yes'}"
        case _:
            return ""


def _answer(answer: FetchAnswer, records: Iterable[Record]) -> str:
    if answer.error:
        return answer.error.name
    if answer.diverging is not None:
        return f"logs diverge at {answer.diverging.end_offset}"
    return f"{_labels(records) or 'nothing new'}, HW {answer.high_watermark}"


def _labels(records: Iterable[Record]) -> str:
    labels = [record.label for record in records]
    return " ".join(labels) if len(labels) <= 4 else f"{labels[0]} … {labels[-1]}"


def _names(brokers: Iterable[BrokerId], world: World) -> str:
    return f"{{{' '.join(map(world.name_of, brokers))}}}"
