"""Reads records for `consume`: from chosen positions, or as a member of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from holdfast.cli.records.positions import Positions, Span, span
from holdfast.cluster.admin.connection import ANSWER_S, Connection
from holdfast.cluster.admin.errors import RefusedError, error_of, reason_of

BATCH: Final = 500
LOOK_S: Final = 0.2
BACKOFF_MS: Final = 20
"""When librdkafka has enough records in its queue. Its default, a second, is longer than we need to
print them."""
NO_GROUP: Final = "holdfast-consume"
"""librdkafka wants a name. Nothing is committed under it."""

Say = Callable[[str], None]


def consumer(
    connection: Connection, say: Say, settings: dict[str, Any], group: str | None
) -> Consumer:
    config = {
        "enable.partition.eof": True,
        "enable.auto.commit": group is not None,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "fetch.queue.backoff.ms": BACKOFF_MS,
        **connection.client_config(say),
        "group.id": group or NO_GROUP,
        **settings,
    }
    try:
        return Consumer(config)
    except KafkaException as error:
        raise error_of("consume", error.args[0]) from None


def spans(reader: Consumer, topic: str, partitions: Sequence[int], wanted: Positions) -> list[Span]:
    """Where each partition begins and ends."""
    try:
        starts = _by_time(reader, topic, partitions, wanted.start_ms)
        stops = _by_time(reader, topic, partitions, wanted.stop_ms)
        return [
            span(
                wanted,
                one,
                reader.get_watermark_offsets(TopicPartition(topic, one), timeout=ANSWER_S),
                (starts.get(one), stops.get(one)),
            )
            for one in partitions
        ]
    except KafkaException as error:
        raise error_of(f"offsets of {topic}", error.args[0]) from None


def _by_time(
    reader: Consumer, topic: str, partitions: Sequence[int], time_ms: int | None
) -> dict[int, int]:
    """The first offset at or after a time, where there is one."""
    if time_ms is None:
        return {}
    asked = [TopicPartition(topic, one, time_ms) for one in partitions]
    found = reader.offsets_for_times(asked, timeout=ANSWER_S)
    return {one.partition: one.offset for one in found if one.offset >= 0}


def read_spans(
    reader: Consumer, topic: str, wanted: Sequence[Span], *, exits_at_end: bool
) -> Iterator[list[Message]]:
    """Records of these spans; ends where every partition has its stop, or its end."""
    stops = {one.partition: one.stop for one in wanted}
    left = {one.partition for one in wanted if one.stop is None or one.start < one.stop}
    reader.assign(
        [TopicPartition(topic, one.partition, one.start) for one in wanted if one.partition in left]
    )
    while left:
        records = []
        for message in reader.consume(BATCH, LOOK_S):
            partition, offset, stop = _place(message, stops)
            if partition not in left:
                continue
            if _is_end(message, topic):
                if exits_at_end or (stop is not None and offset >= stop):
                    left.discard(partition)
                continue
            if stop is None or offset < stop:
                records.append(message)
            if stop is not None and offset >= stop - 1:
                left.discard(partition)
        yield records


def _place(message: Message, stops: Mapping[int, int | None]) -> tuple[int, int, int | None]:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset, stops.get(partition)


def read_group(reader: Consumer, topic: str, *, exits_at_end: bool) -> Iterator[list[Message]]:
    """Records of the partitions that the group assigns; ends where all of them are at their end."""
    at_end: set[int] = set()
    assignment: list[set[int]] = []

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        at_end.clear()
        assignment[:] = [{one.partition for one in partitions}]

    reader.subscribe([topic], on_assign=assigned)
    while not (exits_at_end and assignment and at_end >= assignment[0]):
        records = []
        for message in reader.consume(BATCH, LOOK_S):
            partition = message.partition()
            assert partition is not None
            if _is_end(message, topic):
                at_end.add(partition)
            else:
                at_end.discard(partition)
                records.append(message)
        yield records


def store(reader: Consumer, records: Sequence[Message]) -> None:
    """Let the group commit these records, which have been printed."""
    for message in {(one.topic(), one.partition()): one for one in records}.values():
        reader.store_offsets(message)


def _is_end(message: Message, topic: str) -> bool:
    """Whether this is the end of a partition and no record. RefusedError for any other error."""
    error = message.error()
    if error is None:
        return False
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    raise RefusedError(f"read {topic} [{message.partition()}]: {reason_of(error)}")
