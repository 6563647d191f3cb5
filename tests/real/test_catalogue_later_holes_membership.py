"""Section D2 on real brokers: ISR membership, eligible leaders, and what survives on disk."""

from __future__ import annotations

import pytest

from holdfast.cluster import KafkaError
from holdfast.model import ErrorCode
from holdfast.protocol.messages.produce import ProduceRequest
from tests.real import wire
from tests.real.events import Events
from tests.real.scenarios import EMBEDDED, NEAREST, ON_BOTH, real
from tests.real.stage import LAG_MS, Stage, values

TWO = {"min.insync.replicas": "2"}
ONE = {"min.insync.replicas": "1"}


@real("maximal-isr", "after")
def test_maximal_isr(stage: Stage, variant: str) -> None:
    stage.create(config=TWO)
    stage.part("A", "C")
    stage.send_until_acknowledged("warm")
    stage.wait_isr("AB")
    # C reaches the end. What the controller says to A is late: A does not know that C is in.
    stage.delay("K", "A", 20.0)
    stage.reconnect("A", "C")
    stage.wait_isr("ABC")
    stage.part("A", "C")
    send = stage.begin_send(*values("m0..m9"), to="A")
    stage.wait_end("B", 11)
    assert stage.replica("A").isr == tuple(stage.brokers("AB")), "the answer is under way"
    assert stage.replica("A").hw == 1
    # B first: if it led for a moment, C would get the records from it.
    stage.kill("B")
    stage.kill("A")
    assert not send.result(30).is_acknowledged
    stage.wait_leader("C")
    stage.reconnect()
    stage.restart("A", "B")
    stage.wait_isr("ABC")
    stage.send_until_acknowledged(*values("m0..m9"))
    stage.finish()


@real("fenced-rejoin", "today")
def test_fenced_rejoin(stage: Stage, variant: str) -> None:
    stage.create("AB", config=TWO)
    stage.send("r0")
    stage.wait_settled(1)
    # B's session ends, and B fetches on: level with A, and fenced.
    stage.cut_store("B")
    stage.wait_lost("B")
    stage.wait_isr("A")
    Events(stage).first("A", "isr-refused", error="INELIGIBLE_REPLICA")
    assert stage.isr() == "A"
    stage.cluster.power_loss(stage.broker("B"))
    stage.kill("A")
    stage.restart("B")
    stage.wait_leader(None)
    stage.restart("A")
    stage.wait_leader("A")
    stage.finish()


@real("stale-broker-epoch", "after", stores=(EMBEDDED,))
def test_stale_broker_epoch(stage: Stage, variant: str) -> None:
    stage.create("AB", config=TWO)
    stage.send(*values("r0..r9"))
    stage.wait_settled(10)
    # A stands still with B's fetch in its socket, while B dies and comes back with an empty disk.
    stage.cluster.pause(stage.broker("A"))
    stage.kill("B")
    stage.lose_disk("B")
    stage.restart("B")
    stage.cluster.resume(stage.broker("A"))
    stage.wait_isr("AB")
    events = Events(stage)
    joined = events.first("A", "isr-applied", isr=stage.brokers("AB"))
    copied = events.all("B", "appended", end_offset=10)[-1]
    assert copied["t"] <= joined["t"], "the empty one is no member"
    stage.kill("A")
    stage.wait_leader("B")
    assert stage.labels("B") == values("r0..r9")
    stage.restart("A")
    stage.finish()


@real("last-replica-standing", "after", long=ON_BOTH)
def test_last_replica_standing(stage: Stage, variant: str) -> None:
    stage.create("CAB", config=TWO)  # C leads
    stage.send("r0")
    stage.wait_settled(1)
    stage.cluster.flush(stage.broker("C"))
    stage.kill("A")
    stage.wait_isr("BC")
    stage.send_until_acknowledged("r1")
    stage.part("C", "B")
    unanswered = stage.begin_send("r2", to="C")
    stage.wait_end("C", 3)
    stage.cluster.stop(stage.broker("B"))
    assert unanswered.result(30).error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    stage.wait_isr("C")
    assert stage.replica("C").hw == 2, "one copy is not enough to commit"
    stage.power_loss("C")
    assert [stage.labels(name) for name in "ABC"] == [["r0"], ["r0", "r1"], ["r0"]]
    stage.restart("A", "B")
    stage.wait_leader("B")
    stage.restart("C")
    stage.wait_isr("ABC")
    assert stage.labels("C") == ["r0", "r1"]
    stage.finish()


@real("whole-cluster-power-loss", "after", "beyond")
def test_whole_cluster_power_loss(stage: Stage, variant: str) -> None:
    stage.create(config={"min.insync.replicas": "3" if variant == "after" else "2"})
    stage.send(*values("r0..r4"))
    stage.wait_settled(5)
    stage.cluster.flush(stage.broker("B"))
    stage.send(*values("r5..r7"))
    stage.wait_settled(8)
    stage.cluster.flush(stage.broker("C"))
    stage.send(*values("r8 r9"))
    stage.wait_settled(10)
    stage.part("A", "C")
    first = stage.begin_send(*values("r10 r11"), to="A")
    stage.wait_end("B", 12)
    stage.part("A", "B")
    second = stage.begin_send(*values("r12..r14"), to="A")
    stage.wait_end("A", 15)
    stage.cluster.flush(stage.broker("A"))
    for name in "ABC":
        stage.power_loss(name)
    assert not first.result(30).is_acknowledged
    assert not second.result(30).is_acknowledged
    found = [len(stage.labels(name)) for name in "ABC"]
    assert found == [15, 5, 8]
    stage.restart("B")
    stage.wait_leader(None)
    stage.restart("C")
    stage.wait_leader(None if variant == "after" else "C")
    stage.restart("A")
    stage.wait_leader("A" if variant == "after" else "C")
    stage.finish()
    assert len(stage.read()) == (15 if variant == "after" else 8)


@real("unclean-exact-loss", "acks-1", "acks-all", "unclean-off")
def test_unclean_exact_loss(stage: Stage, variant: str) -> None:
    acks = 1 if variant == "acks-1" else -1
    is_unclean = variant != "unclean-off"
    stage.create(config=TWO | {"unclean.leader.election.enable": str(is_unclean).lower()})
    stage.send("r0", "r1")
    stage.wait_settled(2)
    stage.kill("C")
    stage.wait_isr("AB")
    stage.send(*values("r2..r4"), acks=acks)
    stage.wait_end("B", 5)
    stage.part("A", "B")
    send = stage.begin_send(*values("r5..r9"), acks=acks, to="A")
    stage.wait_end("A", 10)
    stage.kill("B")
    assert send.result(30).is_acknowledged == (acks == 1)
    stage.kill("A")
    stage.restart("C")
    if not is_unclean:
        stage.restart("A")
        stage.wait_leader(None)
        with pytest.raises(KafkaError, match="LEADER_NOT_AVAILABLE"):
            stage.cluster.leader(stage.topic)
        kept = set(stage.labels("A") + stage.labels("B"))
        assert kept == set(values("r0..r9")), "unavailable, with nothing lost"
        assert stage.refused_kept(kept) == stage.expected.refused_kept
        stage.finish()
        return
    stage.wait_leader("C")
    stage.restart("A")
    stage.wait_isr("AC")
    assert stage.labels("A") == ["r0", "r1"]
    stage.finish()


@real("acks1-planned-move", "acks-1", "acks-all")
def test_acks1_planned_move(stage: Stage, variant: str) -> None:
    acks = 1 if variant == "acks-1" else -1
    stage.create("ABC", config=TWO)
    stage.elect("B")
    stage.wait_leader("B")
    stage.wait_known("B", "ABC")
    stage.send("m0", acks=acks)
    stage.wait_settled(1)

    def on_leader_only(leader: str, others: str, label: str) -> None:
        stage.part(leader, others)
        send = stage.begin_send(label, acks=acks, to=leader)
        stage.wait_end(leader, stage.replica(others[0]).leo + 1)
        sends.append((label, send))

    def retried() -> None:
        label, send = sends.pop()
        if acks == 1:
            assert send.result(30).is_acknowledged
        else:
            assert send.result(30).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
            stage.send_until_acknowledged(label)

    sends = []  # type: ignore[var-annotated]
    on_leader_only("B", "AC", "m1")
    stage.elect("A")
    stage.wait_leader("A")
    stage.reconnect()
    retried()
    stage.wait_isr("ABC")
    stage.wait_known("A", "ABC")
    stage.wait_settled(stage.replica("A").leo)
    # A controlled shutdown.
    on_leader_only("A", "BC", "m2")
    stage.cluster.stop(stage.broker("A"))
    stage.until(lambda: stage.leader() in ("B", "C"), "led by another")
    stage.reconnect()
    retried()
    stage.restart("A")
    stage.wait_isr("ABC")
    # A reassignment away from a leader.
    stage.elect("B")
    stage.wait_leader("B")
    stage.wait_known("B", "ABC")
    stage.wait_settled(stage.replica("B").leo)
    on_leader_only("B", "AC", "m3")
    stage.move_to("AC")
    stage.until(lambda: stage.leader() in ("A", "C"), "led by one that stays")
    stage.reconnect()
    retried()
    stage.finish()


@real("append-after-io-error", "after")
def test_append_after_io_error(stage: Stage, variant: str) -> None:
    stage.create("AB", config=ONE)
    stage.send("m0")
    stage.wait_settled(1)
    stage.kill("B")
    stage.wait_isr("A")
    stage.cluster.io_error(stage.broker("A"), f"{stage.topic}-0")
    assert not stage.send("m1", to="A").is_acknowledged
    assert not stage.send("m2", to="A").is_acknowledged
    stage.wait_leader(None)
    stage.kill("A")
    stage.restart("A")
    stage.wait_leader("A")
    stage.finish()
    assert stage.read() == ["m0"]


@real("phantom-read", "page-cache", "every-append")
def test_phantom_read(stage: Stage, variant: str) -> None:
    flush = {"flush.messages": "1"} if variant == "every-append" else {}
    stage.create("A", config=ONE | flush)
    stage.send("m0")
    stage.cluster.flush(stage.broker("A"))
    with stage.connection(stage.broker("A")) as connection:
        connection.version_of(ProduceRequest)
        stage.disconnect("A", "")
        unanswered = stage.pool.submit(stage.send_on, connection, "m1", acks=-1)
        stage.wait_end("A", 2)
        stage.kill("A")
        assert unanswered.result(30).error is None
    stage.restart("A")
    stage.wait_leader("A")
    stage.wait_hw("A", 2)
    assert stage.read() == ["m0", "m1"], "the page cache has survived"
    stage.power_loss("A")
    stage.restart("A")
    stage.wait_leader("A")
    stage.wait_hw("A", stage.replica("A").leo)
    kept = stage.read()
    exposed = tuple(label for label in ("m0", "m1") if label not in kept)
    assert exposed == stage.expected.exposed_lost
    stage.finish()


@real("follower-read-behind", "after", flavour=NEAREST)
def test_follower_read_behind(stage: Stage, variant: str) -> None:
    stage.create("AB", config=TWO)
    stage.send("r0", "r1")
    stage.wait_settled(2)
    stage.unknown_commit("A", "B", "r2")
    assert stage.read() == ["r0", "r1", "r2"]
    with stage.connection(stage.broker("B")) as connection:
        answer = wire.fetch(connection, stage.topic, 3)
        assert answer.error_code == ErrorCode.OFFSET_NOT_AVAILABLE, "not: out of range"
        stage.reconnect()
        stage.wait_settled(3)
        answer = wire.fetch(connection, stage.topic, 3)
        assert (answer.error_code, wire.labels_of(answer)) == (0, [])
        stage.send("r3")
        stage.wait_settled(4)
        assert wire.labels_of(wire.fetch(connection, stage.topic, 3)) == ["r3"]
    stage.finish()


@real("stale-partition-version", "after", long=ON_BOTH)
def test_stale_partition_version(stage: Stage, variant: str) -> None:
    stage.create(config=ONE)
    stage.send("m0")
    stage.wait_settled(1)
    # What the controller says to A is late, and C restarts: a new version that A does not know.
    stage.delay("K", "A", 2 * LAG_MS / 1000)
    stage.kill("C")
    stage.restart("C")
    stage.part("A", "B")
    assert stage.send("m1", to="A").is_acknowledged, "A gets rid of B in the end"
    assert "B" not in stage.isr()
    stage.reconnect()
    stage.wait_isr("ABC")
    stage.finish()
