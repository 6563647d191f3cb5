"""Section C of the catalogue on real brokers: leader elections."""

from __future__ import annotations

from holdfast.model import ErrorCode
from tests.real import wire
from tests.real.events import Events
from tests.real.scenarios import ON_BOTH, real
from tests.real.stage import Stage

ONE = {"min.insync.replicas": "1"}


@real("election-first-in-isr")
def test_election_first_in_isr(stage: Stage, variant: str) -> None:
    stage.create("ABCK")
    stage.part("A", "B")
    stage.send("m0")
    stage.wait_isr("ACK")
    stage.kill("A")
    stage.wait_leader("C")
    with stage.asking() as client:
        metadata = client.partition(stage.topic, 0)
    assert metadata.leader_epoch == 1
    stage.wait_known("C", "BCK")
    stage.wait_isr("BCK")
    stage.send_until_acknowledged("m1")
    stage.finish()


@real("election-none-clean", long=ON_BOTH)
def test_election_none_clean(stage: Stage, variant: str) -> None:
    stage.create(config=ONE)
    stage.send("m0")
    stage.part("A", "BC")
    stage.send("m1")
    stage.wait_isr("A")
    stage.kill("A")
    stage.wait_leader(None)
    stage.reconnect()
    assert stage.send("m2").error is None, "nobody to send it to"
    with stage.asking() as client:
        assert client.partition(stage.topic, 0).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    for name in "BC":
        result = stage.send("m2", to=name)
        assert result.error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE)
        with stage.connection(stage.broker(name)) as connection:
            assert wire.fetch(connection, stage.topic, 0).error_code
    stage.restart("A")
    stage.wait_leader("A")
    stage.wait_isr("ABC")
    assert stage.read() == ["m0", "m1"]
    stage.finish()


@real("election-unclean", "before", "after")
def test_election_unclean(stage: Stage, variant: str) -> None:
    is_unclean = variant == "before"
    stage.create(config=ONE | {"unclean.leader.election.enable": str(is_unclean).lower()})
    stage.send("m0")
    stage.part("A", "C")
    stage.send("m1")
    stage.wait_isr("AB")
    stage.part("A", "B")
    stage.send("m2", "m3")
    stage.wait_isr("A")
    assert [stage.labels(name) for name in "BC"] == [["m0", "m1"], ["m0"]]
    stage.kill("A")
    stage.wait_leader("B" if is_unclean else None)
    stage.reconnect()
    if is_unclean:
        assert stage.send("x").is_acknowledged
    stage.restart("A")
    stage.wait_isr("ABC")
    expected = ["m0", "m1", "x"] if is_unclean else ["m0", "m1", "m2", "m3"]
    assert [stage.labels(name) for name in "ABC"] == [expected] * 3
    stage.finish()


@real("old-leader-returns", "after")
def test_old_leader_returns(stage: Stage, variant: str) -> None:
    stage.create()
    stage.send("m0")
    stage.wait_settled(1)
    stage.unknown_commit("A", "BC", "m1")
    unanswered = stage.begin_send("x", to="A")
    stage.wait_end("A", 3)
    stage.kill("A")
    assert unanswered.result(30).error is None
    stage.wait_leader("B")
    stage.reconnect()
    stage.send_until_acknowledged("m2")
    stage.restart("A")
    stage.wait_isr("ABC")
    truncation = Events(stage).first("A", "truncated")
    assert (truncation["end_offset"], truncation["was"]) == (2, 3), "x goes and m1 stays"
    assert stage.labels("A") == ["m0", "m1", "m2"]
    stage.finish()


@real("controller-failover", long=ON_BOTH)
def test_controller_failover(stage: Stage, variant: str) -> None:
    stage.create()
    stage.send("m0")
    stage.wait_settled(1)
    old = stage.broker("K")
    # The leader dies while the controller stands still: it can decide nothing, and is given up.
    stage.cluster.pause(old)
    stage.cluster.kill(stage.broker("A"))
    stage.until(lambda: stage.find_controller() not in (None, old), "another controller")
    new = stage.find_controller()
    assert new is not None
    stage.until(lambda: stage.replica("B").role == "leader", "B leads")
    result = stage.send("m1", to="B")
    assert result.is_acknowledged
    # It continues as leader of an old epoch, which no longer counts.
    stage.cluster.resume(old)
    stage.until(lambda: not stage.cluster.status(old)["is_controller"], "deposed")
    stage.until(lambda: stage.cluster.status(old)["controller"] == new, "obeying the new one")
    assert stage.replica("B").role == "leader"
    assert stage.send("m2", to="B").is_acknowledged
    stage.finish()
