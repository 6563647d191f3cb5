"""Verdicts: three outcomes stay apart, and a verdict follows the settings' guarantee."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core import FlushRule, Guards, Rules, Truncation
from holdfast.lab.judge.verdict import BEYOND, INVALID, OUTCOMES, VALID
from holdfast.lab.scenarios.run import run_scenario
from holdfast.lab.scenarios.scenario import parse
from holdfast.lab.world.client_history import Status
from holdfast.lab.world.world import World
from holdfast.model import Offset
from tests.unit.lab.worlds import (
    acknowledgement,
    crash,
    labels,
    lose_power,
    producer_of,
    verdict_of,
    world_of,
)


def world_with(*records: str, names: str = "ABC", acks: int = -1, **settings: Any) -> World:
    world = world_of(names, **settings)
    producer_of(world, acks=acks).send(list(records))
    world.settle()
    return world


def start(world: World, *names: str) -> None:
    for name in names:
        world.brokers[name].start()
    world.settle()
    world.advance(1_000, flowing=True)


def forget_everything(world: World, but: int = 0) -> None:
    """Every disk loses its records, except the first few."""
    for broker in world.brokers.values():
        broker.disk.truncate_to(Offset(but))


def acks_1_loss(*, committed: bool = False, **settings: Any) -> World:
    """A leader acknowledges m0 and dies before any follower has copied it."""
    world = world_of("ABC", **settings)
    producer_of(world, acks=1).send(["m0"])
    world.pump()
    acknowledgement(world, "m0").exposed = committed
    crash(world, "A")
    world.settle()
    start(world, "A")
    return world


def test_an_acknowledged_record_in_the_log_is_kept() -> None:
    verdict = verdict_of(world_with("m0", "m1"))
    assert (verdict.verdict, verdict.outcome, verdict.lost) == (VALID, "kept", ())
    assert verdict.reason == OUTCOMES["kept"]
    assert not verdict.offline


def test_acknowledged_and_lost() -> None:
    world = acks_1_loss()
    verdict = verdict_of(world)
    assert (verdict.outcome, verdict.lost) == ("lost", ("m0",))
    assert (verdict.exposed_lost, verdict.refused_kept) == ((), ())


def test_exposed_to_a_consumer_and_lost() -> None:
    world = world_with("m0", min_insync_replicas=1)
    assert acknowledgement(world, "m0").exposed
    acknowledgement(world, "m0").status = Status.UNANSWERED
    for name in "ABC":
        lose_power(world, name)
    start(world, *"ABC")
    verdict = verdict_of(world)
    assert (verdict.outcome, verdict.exposed_lost) == ("exposed-lost", ("m0",))
    assert (verdict.lost, verdict.refused_kept) == ((), ())


def test_refused_but_kept() -> None:
    world = world_of("AB", min_insync_replicas=2)
    world.settle()
    producer_of(world).send(["m0"])
    world.pump()
    crash(world, "B")
    world.settle()
    verdict = verdict_of(world)
    refused = acknowledgement(world, "m0")
    assert (refused.status, refused.error) == (Status.REFUSED, "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
    assert labels(world, "A") == ["m0"], "refused after the append"
    assert (verdict.outcome, verdict.refused_kept) == ("refused-kept", ("m0",))
    assert (verdict.verdict, verdict.lost, verdict.exposed_lost) == (VALID, (), ())


def test_the_three_outcomes_of_one_run_are_listed_apart() -> None:
    world = world_with("kept", "gone", "seen", "refused", min_insync_replicas=1)
    acknowledgement(world, "seen").status = Status.UNANSWERED
    acknowledgement(world, "refused").status = Status.REFUSED
    forget_everything(world, but=1)
    refused = acknowledgement(world, "refused")
    assert refused.exposed
    verdict = verdict_of(world)
    assert verdict.lost == ("gone",)
    assert verdict.exposed_lost == ("seen", "refused")
    assert verdict.refused_kept == ()
    assert verdict.outcome == "lost"


def test_a_record_that_was_neither_acknowledged_nor_readable_may_go() -> None:
    world = world_of("ABC")
    producer_of(world).send(["m0"])
    world.pump()
    crash(world, "A")
    world.settle()
    start(world, "A")
    assert labels(world, "A") == []
    verdict = verdict_of(world)
    assert (verdict.verdict, verdict.outcome) == (VALID, "kept")


def test_without_a_leader_the_partition_is_offline_and_nothing_is_lost_yet() -> None:
    world = world_with("m0", min_insync_replicas=2)
    for name in "ABC":
        crash(world, name)
    verdict = verdict_of(world)
    assert (verdict.verdict, verdict.outcome, verdict.lost) == (VALID, "offline", ())
    assert verdict.offline


def test_without_a_leader_what_no_disk_holds_is_lost() -> None:
    world = world_with("m0", min_insync_replicas=3)
    for name in "ABC":
        lose_power(world, name)
    assert verdict_of(world).lost == ("m0",)


# Beyond the guarantee, or broken?


@pytest.mark.parametrize(
    ("acks", "reason"),
    [(0, "acks=0 guarantees nothing"), (1, "acks=1 guarantees one copy, on the leader")],
)
def test_acks_0_and_1_guarantee_little(acks: int, reason: str) -> None:
    world = acks_1_loss()
    acknowledgement(world, "m0").acks = acks
    verdict = verdict_of(world)
    assert (verdict.verdict, verdict.reason) == (BEYOND, reason)


def test_acks_all_guarantees_the_record() -> None:
    world = acks_1_loss()
    acknowledgement(world, "m0").acks = -1
    verdict = verdict_of(world)
    assert (verdict.verdict, verdict.reason) == (INVALID, "the settings guarantee that it is kept")


def test_what_was_committed_must_stay_whatever_its_producer_asked_for() -> None:
    verdict = verdict_of(acks_1_loss(committed=True))
    assert (verdict.verdict, verdict.reason) == (INVALID, "what a consumer can read must stay")


def test_an_excused_loss_does_not_hide_one_that_is_not() -> None:
    world = acks_1_loss()
    other = world.history.add("seen", "p", -1)
    other.exposed, other.status = True, Status.UNANSWERED
    verdict = verdict_of(world)
    assert (verdict.lost, verdict.exposed_lost) == (("m0",), ("seen",))
    assert (verdict.verdict, verdict.reason) == (INVALID, "what a consumer can read must stay")


@pytest.mark.parametrize("minimum", [1, 2, 3])
@pytest.mark.parametrize("lossy", ["", "A", "AB", "ABC"])
def test_as_many_lossy_machines_as_the_minimum_are_beyond_the_guarantee(
    minimum: int, lossy: str
) -> None:
    world = world_with("m0", min_insync_replicas=minimum)
    forget_everything(world)
    for name in lossy:
        world.invariants.lost_records(name, "lost power")
    verdict = verdict_of(world)
    assert verdict.lost == ("m0",)
    if len(lossy) >= minimum:
        assert verdict.verdict == BEYOND
        assert f"min.insync.replicas={minimum} survives {minimum - 1}" in verdict.reason
    else:
        assert verdict.verdict == INVALID


@pytest.mark.parametrize(("minimum", "without_power"), [(2, "A"), (2, "B"), (3, "AB"), (3, "BC")])
def test_fewer_lossy_machines_than_the_minimum_lose_nothing(
    minimum: int, without_power: str
) -> None:
    world = world_with("m0", min_insync_replicas=minimum)
    for name in "ABC":
        if name in without_power:
            assert lose_power(world, name) == ["m0"]
        else:
            crash(world, name)
    start(world, *"ABC")
    verdict = verdict_of(world)
    assert (verdict.verdict, verdict.outcome) == (VALID, "kept")


def test_a_minimum_of_zero_excuses_no_more_than_one() -> None:
    world = acks_1_loss(min_insync_replicas=0)
    acknowledgement(world, "m0").acks = -1
    assert verdict_of(world).verdict == INVALID


def test_a_flush_before_every_answer_loses_nothing_to_power_failures() -> None:
    world = world_with("m0", min_insync_replicas=3, flush_rule=FlushRule.EVERY_APPEND)
    for name in "ABC":
        assert lose_power(world, name) == []
    start(world, *"ABC")
    verdict = verdict_of(world)
    assert (verdict.verdict, verdict.outcome) == (VALID, "kept")


def unclean(rules: Rules) -> World:
    """B leads without m1, which A alone had acknowledged; m2 takes its offset; A comes back."""
    world = world_of("AB", rules=rules, unclean_leader_election_enable=True)
    producer = producer_of(world)
    producer.send(["m0"])
    world.settle()
    world.advance(500, flowing=True)
    crash(world, "B")
    producer.send(["m1"])
    world.settle()
    crash(world, "A")
    start(world, "B")
    producer.leader = ""
    producer.send(["m2"])
    world.settle()
    start(world, "A")
    return world


def test_an_unclean_election_is_beyond_the_guarantee() -> None:
    verdict = verdict_of(unclean(Rules()))
    assert (verdict.verdict, verdict.outcome, verdict.lost) == (BEYOND, "lost", ("m1",))
    assert verdict.reason == "an unclean election discarded committed records"
    assert verdict.diverged == ()


def test_divergence_is_a_bug_under_every_setting() -> None:
    verdict = verdict_of(unclean(Rules(truncation=Truncation.HIGH_WATERMARK)))
    assert (verdict.verdict, verdict.outcome) == (INVALID, "diverged")
    assert (verdict.diverged, verdict.lost) == ((1,), ("m1",))
    assert verdict.reason == "no setting allows two committed records at one offset"


def test_logs_that_differ_above_a_high_watermark_have_not_diverged() -> None:
    world = world_of("ABC")
    world.settle()
    producer_of(world).send(["m0"], to="A")
    world.pump()
    world.expire_session("A")
    world.settle(["B", "C", "controller-1"])
    producer_of(world, "q").send(["m1"], to="B")
    world.settle(["B", "C"])
    assert (labels(world, "A"), labels(world, "B")) == (["m0"], ["m1"])
    assert verdict_of(world).diverged == ()


def test_a_broken_invariant_is_listed_even_if_nothing_is_lost_yet() -> None:
    guards = Guards().without("joiner-reached-high-watermark", "joiner-reached-epoch-start")
    world = world_of("ABC", rules=Rules(guards=guards), min_insync_replicas=1)
    world.settle()
    crash(world, "C")
    producer_of(world).send(["m0"])
    world.settle()
    world.brokers["C"].start()
    world.settle(["C"])
    for envelope in world.network.between("C", "A"):
        world.deliver(envelope)
    world.settle(["A"])
    verdict = verdict_of(world)
    assert (verdict.verdict, verdict.lost) == (VALID, ())
    assert verdict.violations == ("C is in the ISR and lacks records that A has committed below 1",)


def test_the_command_records_what_it_prints() -> None:
    text = "# C.\n\ntrace off\ncluster brokers=(A)\nproduce A acks=1\n  m0\n\nverdict\n"
    scenario = parse(text, "s")
    run = run_scenario(scenario, scenario.variants[0])
    last = run.events[-1]
    assert last.kind == "verdict"
    assert last.numbers["outcome"] == run.verdict.outcome == "kept"
    assert run.outputs[-1] == (
        "outcome: kept",
        f"verdict: {run.verdict.verdict} ({run.verdict.reason})",
    )
