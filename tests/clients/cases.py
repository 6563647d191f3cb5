"""The checklist: the cases of using a cluster, each written once for all clients.

A case takes a client and the world, and asserts. `Client.lacks` refers to its name. Every byte,
offset, header and timestamp is compared; where a client cannot express something (see `Limits`)
the rest is still compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from tests.clients import admin_cases, group_cases
from tests.clients.client import CODECS, Client, How, Read, Record
from tests.clients.world import Kept, World, now_ms
from tests.support.waiting import wait_until

Case = Callable[[Client, World], None]

T0 = 1_700_000_000_000
"""A time long past, in milliseconds: no clock could have set it."""

RECORDS = (
    Record(value=b"plain", key=b"key", timestamp=T0),
    Record(value=b"no key", timestamp=T0 + 1),
    Record(value=None, key=b"tombstone", timestamp=T0 + 2),
    Record(value=b"", key=b"empty", timestamp=T0 + 3),
    Record(value=bytes(range(256)), key=b"\x00\xff\n", timestamp=T0 + 4),
    Record(value="čaj 茶 🫖".encode(), key="klíč".encode(), timestamp=T0 + 5),
    Record(value=b"headed", headers=(("a", b"1"), ("b", b"x y")), timestamp=T0 + 6),
    Record(
        value=b"odd headers",
        key=b"h",
        headers=(("twice", b"1"), ("twice", b"2"), ("null", None), ("bytes", b"\x00\xfe")),
        timestamp=T0 + 7,
    ),
    Record(value=b"large " * 20_000, key=b"large", timestamp=T0 + 8),
    *(Record(value=b"many %d" % number, key=b"k", timestamp=T0 + 9) for number in range(40)),
)

WAYS = (How(acks=0), How(acks=1), How(acks=-1), How(acks=-1, is_idempotent=True))


def produce(codec: str, client: Client, world: World) -> None:
    """Every acks and idempotently, in one compression; all replicas have the same bytes."""
    records = [fit for one in RECORDS if (fit := client.limits.fit(one)) is not None]
    assert len(records) >= 40
    for way in WAYS:
        topic = world.topic(f"produce-{codec}")
        before = now_ms()
        acked = client.produce(topic, 0, records, way._replace(compression=codec))
        kept = world.kept_by_all(topic, 0, len(records))
        check_records(kept.records, records, (before, now_ms()))
        check_batches(kept, codec, is_idempotent=way.is_idempotent)
        if acked is not None and way.acks != 0:
            assert acked == list(range(len(records)))
        if way is WAYS[-1] or codec == "none":
            assert client.consume(topic, 0, 0, len(records)) == kept.records


def check_records(kept: Sequence[Read], sent: Sequence[Record], clock: tuple[int, int]) -> None:
    """All sent records, in order, at offsets without gaps."""
    assert [one.offset for one in kept] == list(range(len(sent)))
    for found, record in zip(kept, sent, strict=True):
        assert (found.key, found.value, found.headers) == (
            record.key,
            record.value,
            record.headers,
        )
        if record.timestamp is None:
            assert clock[0] - 1 <= found.timestamp <= clock[1]
        else:
            assert found.timestamp == record.timestamp


def check_batches(kept: Kept, codec: str, *, is_idempotent: bool) -> None:
    """Batches as configured. A client may leave a batch uncompressed that would grow."""
    codecs = {CODECS[header.compression] for header in kept.headers}
    assert codec in codecs
    assert codecs <= {codec, "none"}
    assert {header.producer_id >= 0 for header in kept.headers} == {is_idempotent}


def consume_from_offset(client: Client, world: World) -> None:
    """From the middle, over many batches and all codecs, to the end."""
    topic = world.topic("from-offset")
    values = [b"%d" % number * 50 for number in range(300)]
    for start in range(0, 300, 20):
        world.send_values(topic, 0, values[start : start + 20])
    got = client.consume(topic, 0, 117, 183)
    assert [one.offset for one in got] == list(range(117, 300))
    assert [one.value for one in got] == values[117:]
    assert client.consume(topic, 0, 299, 1) == got[-1:]


def seek_by_time(client: Client, world: World) -> None:
    """The first record at or after a time; none after the last."""
    topic = world.topic("by-time")
    for number in range(10):  # one batch each, so that a batch's maximum does not answer for all
        world.send(topic, 0, [Record(value=b"%d" % number, timestamp=T0 + number * 1000)])
    assert client.offset_at(topic, 0, T0 - 5) == 0
    assert client.offset_at(topic, 0, T0 + 2000) == 2
    assert client.offset_at(topic, 0, T0 + 2001) == 3
    assert client.offset_at(topic, 0, T0 + 9000) == 9
    assert client.offset_at(topic, 0, T0 + 9001) is None


def list_offsets(client: Client, world: World) -> None:
    topic = world.topic("offsets", 2)
    assert client.offsets(topic, 0) == (0, 0)
    world.send_values(topic, 1, [b"x"] * 7)
    assert client.offsets(topic, 1) == (0, 7)


def wait_for_records(client: Client, world: World) -> None:
    """A consumer that waits at the end receives later records."""
    topic = world.topic("tail")
    world.send_values(topic, 0, [b"first"])
    assert client.consume(topic, 0, 0, 1)[0].value == b"first"
    world.send_values(topic, 0, [b"second", b"third"])
    assert [one.value for one in client.consume(topic, 0, 1, 2)] == [b"second", b"third"]


def see_topics(client: Client, world: World) -> None:
    """Metadata: the actual leaders, replicas and ISRs."""
    topic = world.topic("metadata", assignment={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]})
    wait_until(lambda: topic in client.topics(), f"{topic} is known")
    seen = client.topics()[topic]
    assert seen == world.partitions(topic)
    assert [(one.leader, one.replicas) for one in seen.values()] == [
        (1, (1, 2, 3)),
        (2, (2, 3, 1)),
        (3, (3, 1, 2)),
    ]


CASES: dict[str, Case] = {
    **{f"produce_{codec}": partial(produce, codec) for codec in CODECS},
    "consume_from_offset": consume_from_offset,
    "wait_for_records": wait_for_records,
    "seek_by_time": seek_by_time,
    "list_offsets": list_offsets,
    "see_topics": see_topics,
    **admin_cases.CASES,
    **group_cases.CASES,
}


def cases_of(client: type[Client]) -> pytest.MarkDecorator:
    """Parametrize a client's test with all its cases."""
    unknown = set(client.lacks) - set(CASES)
    assert not unknown, f"{client.__name__} lacks what no case asks for: {sorted(unknown)}"
    names = [name for name in CASES if name not in client.lacks]
    return pytest.mark.parametrize("case", [CASES[name] for name in names], ids=names)
