"""Section A of the catalogue on real brokers: replication without faults."""

from __future__ import annotations

import time
from statistics import median

from holdfast.model import ErrorCode
from tests.real import wire
from tests.real.events import Events
from tests.real.scenarios import NEAREST, ON_BOTH, real
from tests.real.stage import FETCH_WAIT_MS, LAG_MS, Stage

TWO = {"min.insync.replicas": "2"}


@real("sync-fetch-after-produce")
def test_sync_fetch_after_produce(stage: Stage, variant: str) -> None:
    stage.create("AB", config=TWO)
    assert stage.send("m0").offset == 0
    stage.wait_settled(1)
    events = Events(stage)
    copied = events.moment("B", "appended", end_offset=1)
    receipt = events.moment("A", "fetched", follower=stage.broker("B"), fetch_offset=1)
    committed = events.moment("A", "high-watermark", high_watermark=1)
    learned = events.moment("B", "high-watermark", high_watermark=1)
    assert events.moment("A", "appended", end_offset=1) < copied < receipt
    assert copied < committed < learned, "the follower learns of the commit one fetch later"
    stage.finish()


@real("sync-parked-fetch")
def test_sync_parked_fetch(stage: Stage, variant: str) -> None:
    stage.create("AB", config=TWO)
    stage.send("m0")
    stage.wait_settled(1)
    # No timer is involved: after it a send would take a whole wait, every time.
    took_ms = []
    for number in range(1, 11):
        began = time.monotonic()
        stage.send(f"m{number}")
        took_ms.append((time.monotonic() - began) * 1000)
    assert median(took_ms) < FETCH_WAIT_MS / 2
    with stage.connection(stage.broker("A")) as connection:
        wire.fetch(connection, stage.topic, 11)  # the connection and its versions are known
        began = time.monotonic()
        data = wire.fetch(connection, stage.topic, 11, wait_ms=FETCH_WAIT_MS)
        waited_ms = (time.monotonic() - began) * 1000
    assert (data.error_code, wire.labels_of(data)) == (0, [])
    assert FETCH_WAIT_MS <= waited_ms + 1 < 10 * FETCH_WAIT_MS, "not earlier, not much later"
    stage.finish()


@real("hw-follows-slowest-isr-member")
def test_hw_follows_slowest_isr_member(stage: Stage, variant: str) -> None:
    stage.create()
    stage.send("m0")
    stage.wait_settled(1)
    stage.part("A", "C")
    sends = [stage.begin_send(label) for label in ("m1", "m2", "m3")]
    stage.wait_end("B", 4)
    assert stage.replica("A").hw == stage.replica("C").leo == 1
    assert not any(one.done() for one in sends)
    stage.wait_isr("AB")
    assert all(one.result(30).is_acknowledged for one in sends)
    assert stage.replica("A").hw == 4
    assert stage.replica("C").hw == 1, "the least of its own end and its leader's high watermark"
    stage.reconnect()
    stage.finish()


@real("hw-on-leader-change", long=ON_BOTH)
def test_hw_on_leader_change(stage: Stage, variant: str) -> None:
    stage.create()
    stage.send("m0", "m1")
    stage.wait_settled(2)
    stage.unknown_commit("A", "BC", "m2")
    assert stage.read() == ["m0", "m1", "m2"]
    stage.part("B", "C")  # B cannot learn more than it knows, as long as C counts
    stage.kill("A")
    stage.wait_leader("B")
    assert stage.replica("B").hw == 2
    with stage.connection(stage.broker("B")) as connection:
        data = wire.fetch(connection, stage.topic, 3)
        assert (data.error_code, wire.labels_of(data)) == (0, []), "not sent back"
        assert wire.latest(connection, stage.topic)[0] is ErrorCode.OFFSET_NOT_AVAILABLE
        stage.reconnect()
        stage.wait_hw("B", 3)
        assert wire.latest(connection, stage.topic) == (ErrorCode.NONE, 3)
        stage.send_until_acknowledged("m3")
        data = wire.fetch(connection, stage.topic, 3)
        assert wire.labels_of(data) == ["m3"], "no gap, and nothing twice"
    stage.finish()


@real("write-path")
def test_write_path(stage: Stage, variant: str) -> None:
    stage.create()
    stage.send("m0")
    stage.send("m1")
    stage.wait_settled(2)
    events = Events(stage)
    for end in (1, 2):
        appended = events.moment("A", "appended", end_offset=end)
        committed = events.moment("A", "high-watermark", high_watermark=end)
        for name in "BC":
            follower = stage.broker(name)
            copied = events.moment(name, "appended", end_offset=end)
            assert appended < copied < committed
            assert copied < events.moment("A", "fetched", follower=follower, fetch_offset=end)
            assert committed < events.moment(name, "high-watermark", high_watermark=end)
    stage.finish()


@real("acks-all-waits-for-whole-isr")
def test_acks_all_waits_for_whole_isr(stage: Stage, variant: str) -> None:
    stage.create(config=TWO)
    stage.send("m0")
    stage.part("A", "C")
    send = stage.begin_send("m1")
    stage.wait_end("B", 2)
    assert not send.done(), "two copies are there, and C is a member"
    assert stage.isr() == "ABC"
    stage.wait_isr("AB")
    assert send.result(30).is_acknowledged
    began = time.monotonic()
    assert stage.send("m2").is_acknowledged
    assert (time.monotonic() - began) * 1000 < LAG_MS, "it waits for the other two only"
    stage.reconnect()
    stage.finish()


@real("stale-metadata")
def test_stale_metadata(stage: Stage, variant: str) -> None:
    stage.create()
    stage.send("m0")
    stage.wait_settled(1)
    stage.elect("B")
    stage.wait_leader("B")
    stage.wait_known("B", "ABC")
    assert stage.send("m1", to="A").error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert stage.labels("A") == ["m0"]
    with stage.connection(stage.broker("A")) as connection:
        data = wire.fetch(connection, stage.topic, 1)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    stage.send_until_acknowledged("m1")
    stage.finish()
    assert stage.read() == ["m0", "m1"]


def followers_refuse(stage: Stage, offset: int) -> None:
    for name in "BC":
        with stage.connection(stage.broker(name)) as connection:
            data = wire.fetch(connection, stage.topic, offset)
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@real("read-your-writes", "after")
def test_read_your_writes(stage: Stage, variant: str) -> None:
    stage.create()
    stage.unknown_commit("A", "BC", "m0")
    followers_refuse(stage, 0)
    assert stage.read() == ["m0"]
    stage.reconnect()
    stage.wait_settled(1)
    followers_refuse(stage, 0)
    stage.finish()


@real("read-your-writes", "before", flavour=NEAREST)
def test_read_your_writes_at_any_replica(stage: Stage, variant: str) -> None:
    stage.create()
    stage.unknown_commit("A", "BC", "m0")
    with stage.connection(stage.broker("B")) as connection:
        assert wire.labels_of(wire.fetch(connection, stage.topic, 0)) == [], "hidden"
        assert stage.read() == ["m0"]
        stage.reconnect()
        stage.wait_settled(1)
        assert wire.labels_of(wire.fetch(connection, stage.topic, 0)) == ["m0"]
    assert stage.expected.hidden == ("m0",)
    stage.finish()


@real("monotonic-reads", "after")
def test_monotonic_reads(stage: Stage, variant: str) -> None:
    stage.create()
    stage.unknown_commit("A", "C", "m0")
    stage.wait_hw("B", 1)
    followers_refuse(stage, 0)
    assert stage.read() == stage.read() == ["m0"]
    stage.finish()


@real("monotonic-reads", "before", flavour=NEAREST)
def test_monotonic_reads_at_any_replica(stage: Stage, variant: str) -> None:
    stage.create()
    stage.unknown_commit("A", "C", "m0")
    stage.wait_hw("B", 1)
    with stage.connection(stage.broker("B")) as connection:
        assert wire.labels_of(wire.fetch(connection, stage.topic, 0)) == ["m0"]
    with stage.connection(stage.broker("C")) as connection:
        assert wire.labels_of(wire.fetch(connection, stage.topic, 0)) == [], "it has disappeared"
        ahead = wire.fetch(connection, stage.topic, 1)
    assert ahead.error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert stage.read() == ["m0"]
    assert stage.expected.hidden == ("m0",)
    stage.finish()
