"""Moves a group's committed offsets, as kafka-consumer-groups --reset-offsets does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from holdfast.cluster.admin.connection import REQUEST_S, Connection
from holdfast.cluster.admin.errors import RefusedError, answer
from holdfast.cluster.admin.groups import (
    EARLIEST,
    LATEST,
    Place,
    committed_of,
    offsets_at,
    state_of,
)

IDLE: Final = (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)


class Target(NamedTuple):
    """Where the offsets go: exactly one of these."""

    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    to_offset: int | None = None
    shift_by: int | None = None
    to_ms: int | None = None


def plan(
    connection: Connection,
    group: str,
    wanted: Mapping[str, Sequence[int]] | None,
    target: Target,
) -> list[dict[str, Any]]:
    """One row per partition, with the offset now and then.

    `wanted`: the partitions of some topics, an empty list for all of a topic; None for every
    partition with a committed offset. An offset outside of the log becomes the nearest one inside.
    """
    committed = committed_of(connection, group)
    places = sorted(committed) if wanted is None else list(_places(connection, wanted))
    if not places:
        raise RefusedError(f"group {group} has no committed offset", hint="name a --topic")
    starts = offsets_at(connection, places, EARLIEST)
    ends = offsets_at(connection, places, LATEST)
    at_time: dict[Place, int] = {}
    if target.to_ms is not None:
        at_time = offsets_at(connection, places, OffsetSpec.for_timestamp(target.to_ms))
    rows = []
    for place in (one for one in places if one in ends):
        start, end = starts[place], ends[place]
        asked = _asked(target, start, end, committed.get(place), at_time.get(place, -1))
        rows.append(
            {
                "topic": place[0],
                "partition": place[1],
                "current": committed.get(place),
                "new": min(max(asked, start), end),
            }
        )
    return rows


def execute(connection: Connection, group: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Commit the new offsets. RefusedError while the group has members."""
    offsets = [TopicPartition(row["topic"], row["partition"], row["new"]) for row in rows]
    request = ConsumerGroupTopicPartitions(group, offsets)
    futures = connection.admin.alter_consumer_group_offsets([request], request_timeout=REQUEST_S)
    done = answer(futures[group], f"reset group {group}")
    failed = [
        f"{one.topic} [{one.partition}]: {one.error.str()}"
        for one in done.topic_partitions or ()
        if one.error is not None
    ]
    if failed:
        raise RefusedError(f"reset group {group}: {'; '.join(failed)}")


def check_idle(connection: Connection, group: str) -> None:
    """RefusedError while the group has members: they would overwrite the new offsets."""
    state = state_of(connection, group).state
    if state not in IDLE:
        raise RefusedError(
            f"group {group} is {state.name}: its members commit their own offsets",
            hint="stop its consumers first",
        )


def _places(connection: Connection, wanted: Mapping[str, Sequence[int]]) -> Iterable[Place]:
    topics = connection.metadata().topics
    for topic, partitions in wanted.items():
        if topic not in topics:
            raise RefusedError(f"no topic {topic} at {connection.bootstrap}")
        existing = topics[topic].partitions
        for one in partitions or sorted(existing):
            if one not in existing:
                raise RefusedError(f"{topic} has no partition {one}: it has {len(existing)}")
            yield topic, one


def _asked(target: Target, start: int, end: int, current: int | None, at_time: int) -> int:
    if target.to_earliest:
        return start
    if target.to_offset is not None:
        return target.to_offset
    if target.shift_by is not None and current is not None:
        return current + target.shift_by
    if target.to_current and current is not None:
        return current
    if target.to_ms is not None and at_time >= 0:
        return at_time
    return end  # also of a group without an offset, and of a time after the last record
