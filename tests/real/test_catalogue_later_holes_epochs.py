"""Section D2 on real brokers: leader epochs that a replica missed, and where logs diverge."""

from __future__ import annotations

from holdfast.model import ErrorCode
from tests.real import wire
from tests.real.events import Events
from tests.real.scenarios import ON_BOTH, real
from tests.real.stage import Stage, values

TWO = {"min.insync.replicas": "2"}


def elect_unheard(stage: Stage, name: str, deaf: str) -> None:
    """Elect a leader, and disconnect one replica from the controller meanwhile."""
    stage.disconnect("K", deaf)
    stage.elect(name)
    stage.wait_leader(name)


@real("epoch-unknown-to-leader", "after", long=ON_BOTH)
def test_epoch_unknown_to_leader(stage: Stage, variant: str) -> None:
    stage.create("AB")
    stage.unknown_commit("A", "B", "r0")
    elect_unheard(stage, "B", "A")
    unanswered = stage.begin_send("r1", to="B")
    stage.wait_end("B", 2)
    assert stage.replica("A").leader_epoch == 0, "it knows nothing of B's leader epoch"
    stage.elect("A")
    stage.reconnect()
    stage.wait_leader("A")
    assert unanswered.result(30).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    stage.wait_end("B", 1)
    truncation = Events(stage).first("B", "truncated")
    assert (truncation["end_offset"], truncation["was"]) == (1, 2), "r1 goes and r0 stays"
    stage.wait_isr("AB")
    stage.kill("A")
    stage.wait_leader("B")
    stage.restart("A")
    stage.finish()


@real("zombie-fetcher", "after")
def test_zombie_fetcher(stage: Stage, variant: str) -> None:
    stage.create(config=TWO)
    stage.send(*values("r0..r39"))
    stage.wait_settled(40)
    # B's session ends, and B, who does not know, fetches on.
    stage.disconnect("K", "B")
    stage.cut_store("B")
    stage.wait_lost("B")
    stage.wait_isr("AC")
    stage.part("A", "C")
    unanswered = stage.begin_send(*values("r40..r49"), to="A")
    stage.wait_end("B", 50)
    stage.elect("C")
    assert unanswered.result(30).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    stage.reconnect("A", "C")
    stage.wait_isr("AC")
    stage.send(*values("n40..n59"))
    stage.wait_end("A", 60)
    stage.elect("A")
    stage.wait_leader("A")
    Events(stage).first(
        "A", "fetch-refused", follower=stage.broker("B"), error="FENCED_LEADER_EPOCH"
    )
    assert stage.replica("B").leo == 50, "it gets nothing"
    stage.reconnect()
    stage.wait_isr("ABC")
    truncation = Events(stage).first("B", "truncated")
    assert (truncation["end_offset"], truncation["was"]) == (40, 50)
    stage.finish()


@real("truncate-against-stale-leader", "after")
def test_truncate_against_stale_leader(stage: Stage, variant: str) -> None:
    stage.create(config=TWO)
    # C learns of elections late, but of each of them, in their order.
    stage.delay("K", "C", 1.0)
    stage.elect("B")
    stage.wait_leader("B")
    stage.wait_known("B", "AB")
    stage.cluster.expire_session(stage.broker("B"))
    stage.until(lambda: stage.leader() == "A", "led by A again")
    send = stage.begin_send("r0", to="A")
    send.result(30)
    stage.reconnect()
    if not send.result().is_acknowledged:
        stage.send_until_acknowledged("r0")
    stage.finish()


@real("missed-epoch-same-leader", "after")
def test_missed_epoch_same_leader(stage: Stage, variant: str) -> None:
    stage.create(config=TWO)
    stage.part("A", "B")
    unanswered = stage.begin_send("x", to="A")
    stage.wait_end("C", 1)
    elect_unheard(stage, "B", "C")
    assert unanswered.result(30).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    stage.reconnect("A", "B")
    stage.wait_end("A", 0)
    stage.elect("A")
    stage.wait_leader("A")
    send = stage.begin_send("y", to="A")
    stage.wait_end("B", 1)
    assert stage.replica("C").leader_epoch == 0
    assert stage.labels("C") == ["x"]
    stage.reconnect()
    send.result(30)
    if not send.result().is_acknowledged:
        stage.send_until_acknowledged("y")
    stage.wait_isr("ABC")
    assert "x" not in stage.labels("C")
    stage.finish()


@real("lagging-hw-join", "after")
def test_lagging_hw_join(stage: Stage, variant: str) -> None:
    stage.create(config=TWO)
    stage.send(*values("r0..r4"))
    stage.part("A", "C")
    stage.disconnect("A", "C")
    for label in values("r5..r8"):
        stage.send(label)
    stage.wait_isr("AB")
    stage.unknown_commit("A", "B", "r9")
    stage.delay("B", "C", 0.4)  # one batch at a time
    stage.kill("A")
    stage.wait_leader("B")
    stage.reconnect("C")
    stage.wait_isr("BC")
    events = Events(stage)
    joined = events.moment("B", "isr-applied", isr=stage.brokers("BC"))
    assert events.moment("C", "appended", end_offset=10) < joined, "not with half of it"
    stage.kill("B")
    stage.wait_leader("C")
    assert stage.labels("C") == values("r0..r9")
    stage.restart("A", "B")
    stage.finish()


@real("empty-epoch", "after")
def test_empty_epoch(stage: Stage, variant: str) -> None:
    stage.create(config=TWO)
    stage.send("r0")
    stage.wait_settled(1)
    stage.part("A", "BC")
    unanswered = stage.begin_send("r1", to="A")
    stage.wait_end("A", 2)
    stage.kill("A")
    assert unanswered.result(30).error is None
    files = stage.cluster.files(stage.broker("A"))
    (files.log / f"{stage.topic}-0" / "leader-epoch-checkpoint").unlink()
    stage.wait_leader("B")
    stage.reconnect()
    for name in "BC":
        stage.wait_hw(name, 1)
    stage.unknown_commit("B", "C", "s1")
    end = stage.replica("B").leo
    elect_unheard(stage, "C", "B")
    other = stage.begin_send("s2", to="C")
    stage.wait_end("C", end + 1)
    stage.elect("B")
    stage.reconnect()
    stage.wait_leader("B")
    assert other.result(30).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    stage.wait_end("C", end)
    stage.wait_isr("BC")
    stage.kill("B")
    stage.wait_leader("C")
    stage.restart("A")
    stage.wait_isr("AC")
    assert "r1" not in stage.labels("A")
    stage.restart("B")
    stage.finish()


@real("out-of-range-race", "after")
def test_out_of_range_race(stage: Stage, variant: str) -> None:
    stage.create("AB", config=TWO | {"unclean.leader.election.enable": "true"})
    stage.send(*values("r0..r89"))
    stage.wait_settled(90)
    stage.part("A", "B")
    unanswered = stage.begin_send(*values("r90..r99"), to="A")
    stage.wait_end("A", 100)
    stage.kill("B")
    unanswered.result(30)
    stage.kill("A")
    stage.restart("B")
    stage.wait_leader("B")
    stage.delay("B", "A", 0.5)  # B grows while its answer is under way
    stage.restart("A")
    Events(stage).first("B", "diverged", follower=stage.broker("A"))
    stage.send(*values("n90..n104"), acks=1)
    stage.wait_end("A", 105)
    truncation = Events(stage).first("A", "truncated")
    assert (truncation["end_offset"], truncation["was"]) == (90, 100)
    stage.kill("B")
    stage.wait_leader("A")
    stage.restart("B")
    stage.finish()


@real("consumer-truncation", "after")
def test_consumer_truncation(stage: Stage, variant: str) -> None:
    one = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    stage.create("AB", config=one)
    stage.send("r0", "r1")
    stage.wait_settled(2)
    stage.kill("B")
    stage.send_until_acknowledged("r2", "r3", "r4")
    assert len(stage.read()) == 5
    stage.kill("A")
    stage.restart("B")
    stage.wait_leader("B")
    stage.send_until_acknowledged(*values("n2..n7"))
    with stage.connection(stage.broker("B")) as connection:
        answer = wire.fetch(connection, stage.topic, 5, last_epoch=0)
        assert answer.diverging_epoch is not None, "its position was truncated"
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 2)
        assert not answer.records
        again = wire.fetch(connection, stage.topic, 2, last_epoch=0)
        assert wire.labels_of(again) == values("n2..n7")
    stage.restart("A")
    stage.finish()
