"""Section B of the catalogue on real brokers: how replicas leave and join the ISR."""

from __future__ import annotations

import time

from holdfast.model import ErrorCode
from holdfast.protocol.records import BatchOptions
from tests.real import wire
from tests.real.events import Events
from tests.real.scenarios import ON_BOTH, real
from tests.real.stage import LAG_MS, Stage

SLOW_S = 0.5
"""The round trip of a slow follower, which copies one batch in it."""


def write_faster_than(stage: Stage, slow: str) -> list[str]:
    """Send four records per record that the slow follower copies, until it leaves the ISR."""
    sends = []
    labels: list[str] = []
    while stage.isr() != "AB":
        labels += [f"r{len(labels)}"]
        sends.append(stage.begin_send(labels[-1]))
        stage.wait_end("B", len(labels))
        assert len(labels) < 1000, f"{slow} is never evicted"
    for send in sends:
        assert send.result(30).is_acknowledged
    return labels


@real("lag-slow")
def test_lag_slow(stage: Stage, variant: str) -> None:
    stage.create()
    stage.delay("A", "C", SLOW_S)
    labels = write_faster_than(stage, "C")
    assert stage.replica("C").leo < len(labels)
    fetches = Events(stage).all("A", "fetched", follower=stage.broker("C"))
    assert len(fetches) > 2, "it was never silent"
    stage.reconnect()
    stage.finish()
    joined = Events(stage).all("A", "isr-proposed")[-1]
    receipt = Events(stage).first(
        "A", "fetched", follower=stage.broker("C"), fetch_offset=len(labels)
    )
    assert (receipt["t"], receipt["id"]) <= (joined["t"], joined["id"])


@real("lag-silence-blind", "after")
def test_lag_silence_blind(stage: Stage, variant: str) -> None:
    stage.create()
    stage.delay("A", "C", SLOW_S)
    began = time.monotonic()
    labels = write_faster_than(stage, "C")
    assert time.monotonic() - began > LAG_MS / 1000
    assert stage.replica("A").hw == len(labels), "nobody holds it back any more"
    stage.reconnect()
    stage.finish()


@real("lag-stuck")
def test_lag_stuck(stage: Stage, variant: str) -> None:
    stage.create()
    stage.send("m0")
    stage.wait_settled(1)
    stage.part("A", "C")
    began = time.monotonic()
    stage.until(lambda: time.monotonic() - began > 1.5 * LAG_MS / 1000, "time enough to lag")
    assert stage.isr() == "ABC", "it misses nothing, so it stays"
    assert stage.send("m1").is_acknowledged
    stage.wait_isr("AB")
    stage.reconnect()
    stage.finish()


@real("lag-bootstrapping")
def test_lag_bootstrapping(stage: Stage, variant: str) -> None:
    stage.create()
    stage.part("A", "C")
    assert stage.send("r0").is_acknowledged
    stage.wait_isr("AB")
    for first in range(1, 7):
        stage.send(f"r{first}")
    stage.delay("B", "C", SLOW_S)
    stage.unknown_commit("A", "B", "r7")
    stage.kill("A")
    stage.wait_leader("B")
    assert stage.replica("B").hw < 8, "its own high watermark is behind"
    stage.wait_isr("BC")
    events = Events(stage)
    joined = events.moment("B", "isr-applied", isr=stage.brokers("BC"))
    assert events.moment("C", "appended", end_offset=8) < joined, "all that may be acknowledged"
    stage.reconnect()
    stage.finish()


@real("lag-messages-flapping", "after")
def test_lag_messages_flapping(stage: Stage, variant: str) -> None:
    stage.create("AB", config={"min.insync.replicas": "2"})
    for burst in range(3):
        labels = [f"r{burst * 200 + number}" for number in range(200)]
        sends = [stage.begin_send(*labels[first : first + 10]) for first in range(0, 200, 10)]
        assert all(send.result(30).is_acknowledged for send in sends)
    assert not Events(stage).all("A", "isr-proposed"), "the ISR does not move"
    stage.finish()


@real("session-lost", long=ON_BOTH)
def test_session_lost(stage: Stage, variant: str) -> None:
    stage.create()
    stage.send("m0")
    stage.wait_settled(1)
    # A runs and acts as leader; it has only lost the store and the controller.
    stage.cut_store("A")
    stage.part("A", "K")
    stage.wait_lost("A")
    stage.wait_leader("B")
    assert stage.isr() == "BC"
    old = stage.begin_send("x", to="A", timeout_ms=60_000)
    assert stage.replica("A").role == "leader"
    assert stage.send("m1").is_acknowledged
    stage.until(lambda: "x" in stage.labels("A"), "x written by A")
    assert not old.done()
    stage.reconnect()
    assert old.result(30).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    stage.wait_isr("ABC")
    assert stage.labels("A") == ["m0", "m1"]
    # A follower's session is no different, however fresh its last fetch is.
    stage.cut_store("C")
    stage.wait_lost("C")
    stage.wait_isr("AB")
    assert stage.send("m2").is_acknowledged
    stage.reconnect()
    stage.finish()


@real("not-enough-replicas")
def test_not_enough_replicas(stage: Stage, variant: str) -> None:
    stage.create(config={"min.insync.replicas": "2"})
    stage.send("m0")
    stage.wait_settled(1)
    stage.kill("B", "C")
    stage.wait_isr("A")
    stage.until(lambda: stage.replica("A").isr == (stage.broker("A"),), "A alone, as it knows")
    assert stage.send("m1").error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert stage.labels("A") == ["m0"]
    assert stage.send("m2", acks=1).is_acknowledged
    assert stage.replica("A").hw == 1
    assert stage.read() == ["m0"]
    stage.restart("B")
    stage.wait_isr("AB")
    stage.send_until_acknowledged("m3")
    assert stage.read() == ["m0", "m2", "m3"]
    stage.finish()


@real("not-enough-replicas-after-append", "no-retry", "before", "after")
def test_not_enough_replicas_after_append(stage: Stage, variant: str) -> None:
    stage.create(config={"min.insync.replicas": "2"})
    stage.send("m0")
    stage.wait_settled(1)
    stage.kill("C")
    stage.wait_isr("AB")
    with stage.connection(stage.broker("A")) as connection:
        producer, epoch = wire.producer_id(connection)
    numbered = BatchOptions(producer_id=producer, producer_epoch=epoch, base_sequence=0)
    batch = wire.batch(["m1"], numbered if variant == "after" else None)
    stage.part("A", "B")
    send = stage.pool.submit(stage.send, "m1", to="A", batch=batch)
    stage.wait_end("A", 2)
    stage.kill("B")
    assert send.result(30).error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert stage.labels("A") == ["m0", "m1"], "written, not acknowledged"
    stage.reconnect()
    stage.restart("B")
    stage.wait_hw("A", 2)  # refused, but kept
    stage.wait_isr("AB")
    if variant != "no-retry":
        stage.sent.pop()
        again = stage.send("m1", batch=batch)
        assert again.is_acknowledged
        assert again.offset == (1 if variant == "after" else 2)
    stage.finish()
