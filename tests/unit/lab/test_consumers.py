"""Simulated consumers: what they may read, their errors, and where they continue."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core import Guards, ReadRule, Rules
from holdfast.lab.world.world import World
from holdfast.model import Offset
from tests.unit.lab.worlds import (
    consumer_of,
    crash,
    kinds,
    labels,
    producer_of,
    verdict_of,
    world_of,
)


def world_with(*records: str, names: str = "AB", **settings: Any) -> World:
    """A world in which these records are on every replica, and committed on each."""
    world = world_of(names, **settings)
    producer_of(world).send(list(records))
    world.settle()
    world.advance(500)
    world.settle()
    return world


def seen(world: World) -> list[str]:
    return [str(event.numbers["record"]) for event in kinds(world, "consumed")]


def errors(world: World) -> list[str]:
    return [str(event.numbers["error"]) for event in kinds(world, "read-refused")]


def poll(world: World, name: str = "c", source: str = "") -> None:
    client = world.clients[name]
    client.poll(source)  # type: ignore[union-attr]
    world.pump()


def test_a_consumer_sees_what_is_committed_and_no_more() -> None:
    world = world_with("m0")
    producer_of(world, "q", acks=1).send(["m1"])
    world.pump()
    consumer = consumer_of(world)
    poll(world)
    assert seen(world) == ["m0"]
    poll(world)
    assert consumer.found_nothing
    assert consumer.position == 1
    world.settle()
    poll(world)
    assert seen(world) == ["m0", "m1"]


def test_a_consumer_gets_an_error_without_a_leader() -> None:
    world = world_with("m0", names="A")
    crash(world, "A")
    consumer_of(world)
    poll(world)
    assert errors(world) == ["LEADER_NOT_AVAILABLE"]


def test_a_follower_refuses_to_serve_unless_reads_may_go_anywhere() -> None:
    world = world_with("m0")
    consumer_of(world)
    poll(world, source="B")
    assert errors(world) == ["NOT_LEADER_OR_FOLLOWER"]
    assert seen(world) == []


def test_a_follower_that_hides_an_acknowledged_record_is_recorded() -> None:
    world = world_with("m0", read_rule=ReadRule.ANY_REPLICA)
    world.clients["p"].send(["m1"])  # type: ignore[union-attr]
    world.settle()
    consumer_of(world)
    poll(world, source="B")
    assert seen(world) == ["m0"], "B has m1, and has not learned that it is committed"
    verdict = verdict_of(world)
    assert (verdict.outcome, verdict.hidden) == ("stale-read", ("m1",))


def test_a_reader_ahead_of_a_follower_waits_and_is_not_sent_back() -> None:
    world = world_with("m0", read_rule=ReadRule.ANY_REPLICA)
    world.clients["p"].send(["m1"])  # type: ignore[union-attr]
    world.settle()
    consumer = consumer_of(world)
    poll(world)
    poll(world, source="B")
    assert errors(world) == ["OFFSET_NOT_AVAILABLE"]
    assert consumer.position == 2


def test_an_answer_to_an_older_question_is_ignored() -> None:
    world = world_with("m0", "m1")
    consumer = consumer_of(world)
    consumer.poll()
    consumer.seek(Offset(1))
    world.pump()
    assert seen(world) == []
    poll(world)
    assert seen(world) == ["m1"]


def test_a_position_out_of_range_is_reset_and_traced() -> None:
    world = world_with("m0")
    consumer = consumer_of(world)
    consumer.seek(Offset(9))
    poll(world)
    assert errors(world) == ["OFFSET_OUT_OF_RANGE"]
    assert consumer.position == 0
    poll(world)
    assert seen(world) == ["m0"]


def cut_below_the_reader(rules: Rules) -> World:
    """A reader has m0 and m1; an unclean leader without m1 then takes x1 and x2."""
    world = world_of("AB", rules=rules, min_insync_replicas=1, unclean_leader_election_enable=True)
    producer = producer_of(world)
    producer.send(["m0"])
    world.settle()
    crash(world, "B")
    producer.send(["m1"])
    world.settle()
    consumer_of(world)
    poll(world)
    crash(world, "A")
    world.brokers["B"].start()
    world.settle()
    producer.leader = ""
    producer.send(["x1", "x2"])
    world.settle()
    return world


def test_a_truncation_below_the_position_is_reported_to_the_consumer() -> None:
    world = cut_below_the_reader(Rules())
    assert labels(world, "B") == ["m0", "x1", "x2"]
    poll(world)
    assert errors(world) == ["LOG_TRUNCATION"]
    poll(world)
    assert seen(world) == ["m0", "m1", "x1", "x2"]
    assert verdict_of(world).skipped == ()


def test_without_the_epoch_check_the_reader_skips_a_record_in_silence() -> None:
    world = cut_below_the_reader(Rules(guards=Guards().without("consumer-epoch-check")))
    poll(world)
    assert errors(world) == []
    assert seen(world) == ["m0", "m1", "x2"]
    assert verdict_of(world).skipped == ("x1",)


@pytest.mark.parametrize(
    ("auto", "outcome"), [(True, "lost-at-consumer"), (False, "kept")], ids=["auto", "manual"]
)
def test_what_was_committed_before_the_work_is_lost_by_a_crash(auto: bool, outcome: str) -> None:
    world = world_with("m0", "m1")
    consumer = consumer_of(world, auto_commit=auto)
    poll(world)
    consumer.work(1)
    if not auto:
        consumer.commit()
    consumer.crash()
    consumer.restart()
    poll(world)
    consumer.work(9)
    done = [one.label for one in world.history.processed]
    assert done == (["m0"] if auto else ["m0", "m1"])
    verdict = verdict_of(world)
    assert verdict.outcome == outcome
    assert verdict.consumer_lost == (("m1",) if auto else ())


@pytest.mark.parametrize(("idempotent", "outcome"), [(False, "processed-twice"), (True, "kept")])
def test_a_crash_between_work_and_commit_repeats_the_work(idempotent: bool, outcome: str) -> None:
    world = world_with("m0")
    consumer = consumer_of(world, idempotent_sink=idempotent)
    poll(world)
    consumer.work(1)
    consumer.crash()
    consumer.restart()
    poll(world)
    consumer.work(1)
    consumer.commit()
    assert len(kinds(world, "processed")) == 2
    assert verdict_of(world).outcome == outcome


def test_a_commit_covers_the_work_that_is_done_and_no_more() -> None:
    world = world_with("m0", "m1", "m2")
    consumer = consumer_of(world)
    poll(world)
    consumer.work(2)
    consumer.commit()
    assert world.history.committed == {"c": 2}


def test_a_dead_consumer_gets_nothing() -> None:
    world = world_with("m0")
    consumer = consumer_of(world)
    consumer.poll()
    consumer.crash()
    world.pump()
    assert seen(world) == []
    consumer.restart()
    poll(world)
    assert seen(world) == ["m0"]
