"""Section D of the catalogue on real brokers: how acknowledged records are lost, or kept."""

from __future__ import annotations

from holdfast.cluster.client.admin import elect_leader
from holdfast.model import ErrorCode
from holdfast.protocol.messages.produce import ProduceRequest
from tests.real.events import Events
from tests.real.scenarios import ON_BOTH, real
from tests.real.stage import Stage

ACKS = {"acks-0": 0, "acks-1": 1, "acks-all": -1}
UNCLEAN = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
ONE_OF_TWO = {"min.insync.replicas": "1"}


@real("loss-acks-0", "acks-0", "acks-1", "acks-all")
def test_loss_acks_0(stage: Stage, variant: str) -> None:
    acks = ACKS[variant]
    stage.create("AB", config=ONE_OF_TWO)
    assert stage.send("m0").is_acknowledged
    stage.wait_settled(1)
    # A stands still with the request in its socket, and dies.
    with stage.connection(stage.broker("A")) as connection:
        connection.version_of(ProduceRequest)
        stage.cluster.pause(stage.broker("A"))
        send = stage.pool.submit(stage.send_on, connection, "m1", acks=acks)
        if acks == 0:
            assert send.result(30).is_acknowledged, "as far as its producer knows"
        stage.kill("A")
        send.result(30)
    stage.wait_leader("B")
    if acks:
        stage.send_until_acknowledged("m1", acks=acks)
    stage.restart("A")
    stage.wait_isr("AB")
    stage.wait_known("B", "AB")
    # A client with old metadata.
    result = stage.send("m2", acks=acks, to="A")
    if acks:
        assert result.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        stage.send_until_acknowledged("m2", acks=acks)
    stage.finish()


@real("loss-acks-1", "acks-1", "acks-all")
def test_loss_acks_1(stage: Stage, variant: str) -> None:
    acks = ACKS[variant]
    stage.create("AB", config=ONE_OF_TWO)
    stage.send("m0")
    stage.wait_settled(1)
    stage.part("A", "B")
    send = stage.begin_send("m1", acks=acks)
    stage.wait_end("A", 2)
    if acks == 1:
        assert send.result(30).is_acknowledged
    stage.kill("A")
    assert send.result(30).is_acknowledged == (acks == 1)
    stage.wait_leader("B")
    if acks != 1:
        stage.send_until_acknowledged("m1")
    stage.send_until_acknowledged("m2", acks=acks)
    stage.reconnect()
    stage.restart("A")
    stage.wait_isr("AB")
    truncation = Events(stage).first("A", "truncated")
    assert (truncation["end_offset"], truncation["was"]) == (1, 2)
    stage.finish()


@real("loss-restart-truncation", "today")
def test_loss_restart_truncation(stage: Stage, variant: str) -> None:
    stage.create("AB", config=ONE_OF_TWO)
    stage.send("m0", "m1")
    stage.wait_settled(2)
    stage.unknown_commit("A", "B", "m2")
    stage.part("A", "B")  # for good: a fetch that reaches A would bring B back into the ISR
    stage.kill("B")
    stage.restart("B")
    assert stage.labels("B") == ["m0", "m1", "m2"], "nothing is truncated without need"
    stage.kill("A")
    stage.wait_leader(None)
    stage.restart("A")
    stage.wait_leader("A")
    stage.wait_isr("AB")
    # Once more; this time A runs long enough to answer B.
    stage.wait_settled(3)
    stage.unknown_commit("A", "B", "m3")
    stage.kill("B")
    stage.reconnect()
    stage.restart("B")
    stage.wait_isr("AB")
    stage.kill("A")
    stage.wait_leader("B")
    stage.restart("A")
    stage.finish()


@real("loss-second-failover", "after")
def test_loss_second_failover(stage: Stage, variant: str) -> None:
    stage.create(config={"min.insync.replicas": "2"})
    stage.send("m0")
    stage.wait_settled(1)
    stage.unknown_commit("A", "BC", "m1")
    stage.part("B", "C")
    stage.kill("A")
    stage.wait_leader("B")
    assert stage.isr() == "BC"
    stage.kill("B")
    stage.wait_leader("C")
    stage.restart("A", "B")
    stage.finish()
    assert not [one for name in "ABC" for one in Events(stage).all(name, "truncated")]


@real("divergence-unclean", "after", long=ON_BOTH)
def test_divergence_unclean(stage: Stage, variant: str) -> None:
    stage.create("AB", config=UNCLEAN)
    stage.send("m0")
    stage.part("A", "B")
    stage.send("m1")
    stage.wait_isr("A")
    stage.kill("B", "A")
    stage.restart("B")
    stage.wait_leader("B")
    assert stage.send("m2").offset == 1
    stage.restart("A")
    stage.wait_isr("AB")
    truncation = Events(stage).first("A", "truncated")
    assert (truncation["end_offset"], truncation["was"]) == (1, 2)
    stage.finish()


@real("divergence-power-loss", "after", "minimum-2")
def test_divergence_power_loss(stage: Stage, variant: str) -> None:
    least = "2" if variant == "minimum-2" else "1"
    stage.create("AB", config={"min.insync.replicas": least})
    stage.send("m0")
    stage.wait_settled(1)
    stage.cluster.flush(stage.broker("B"))
    stage.send("m1")
    stage.wait_settled(2)
    stage.cluster.flush(stage.broker("A"))
    assert stage.replica("B").flushed_offset == 1
    stage.power_loss("A")
    stage.wait_leader("B")
    stage.power_loss("B")
    assert [stage.labels(name) for name in "AB"] == [["m0", "m1"], ["m0"]]
    stage.restart("B")
    if least == "1":
        stage.wait_leader("B")
        assert stage.send("m2").offset == 1
    else:
        stage.wait_leader(None)
        assert stage.send("m2").error is None
    stage.restart("A")
    stage.finish()


@real("loss-page-cache", "page-cache", "every-append", long=ON_BOTH)
def test_loss_page_cache(stage: Stage, variant: str) -> None:
    flush = {"flush.messages": "1"} if variant == "every-append" else {}
    stage.create(config={"min.insync.replicas": "3"} | flush)
    stage.send("m0")
    stage.wait_settled(1)
    stage.cluster.flush()
    assert stage.send("m1").is_acknowledged
    stage.power_loss("A", "B", "C")
    stage.lose_disk("A")
    stage.restart("B", "C")
    stage.wait_leader(None)
    with stage.asking() as client:
        elect_leader(client, stage.topic, 0, unclean=True)
    stage.until(lambda: stage.leader() in ("B", "C"), "led by one that is left")
    stage.wait_leader(stage.leader())
    kept = ["m0"] if variant == "page-cache" else ["m0", "m1"]
    assert [stage.labels(name) for name in "BC"] == [kept] * 2
    assert stage.send("m2").error is ErrorCode.NOT_ENOUGH_REPLICAS
    stage.restart("A")
    stage.finish()


@real("loss-isr-optimistic", "after")
def test_loss_isr_optimistic(stage: Stage, variant: str) -> None:
    stage.create("AB", config=ONE_OF_TWO)
    stage.send("m0")
    stage.wait_settled(1)
    stage.part("A", "BCK")
    send = stage.begin_send("m1", to="A")
    events = Events(stage)
    events.first("A", "isr-proposed", isr=stage.brokers("A"))
    assert stage.replica("A").hw == 1
    assert stage.isr() == "AB"
    stage.kill("A")
    assert not send.result(30).is_acknowledged
    stage.wait_leader("B")
    stage.reconnect()
    stage.restart("A")
    stage.finish()
    assert stage.labels("A") == ["m0"]


@real("no-loss-bad-sample")
def test_no_loss_bad_sample(stage: Stage, variant: str) -> None:
    stage.create(config={"min.insync.replicas": "2"})
    stage.send("m0")
    stage.wait_settled(1)
    # As the articles have it: m1 is on A and B, not on C, and C is elected.
    stage.part("A", "C")
    send = stage.begin_send("m1", to="A")
    stage.wait_end("B", 2)
    stage.elect("C")
    stage.wait_leader("C")
    assert send.result(30).error is ErrorCode.NOT_LEADER_OR_FOLLOWER, "never acknowledged"
    stage.reconnect()
    stage.wait_isr("ABC")
    stage.wait_known("C", "ABC")
    # C is put out of the ISR first, so that the answer comes. Then it cannot be elected.
    stage.elect("A")
    stage.wait_leader("A")
    stage.wait_known("A", "ABC")
    stage.part("A", "C")
    stage.send_until_acknowledged("m2")
    stage.wait_isr("AB")
    stage.part("B", "C")  # or C could catch up with B before that dies, too
    stage.kill("A", "B")
    stage.wait_leader(None)
    stage.restart("A", "B")
    stage.finish()
