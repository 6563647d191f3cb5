"""Simulated producers: which answers they get, when they retry, and what that does to the log."""

from __future__ import annotations

import pytest

from holdfast.lab.world.client_history import Status
from holdfast.lab.world.messages import ProduceRequest, ProduceResponse
from holdfast.lab.world.world import World
from tests.unit.lab.worlds import (
    acknowledgement,
    crash,
    kinds,
    labels,
    producer_of,
    verdict_of,
    world_of,
)


def lose_answers(world: World, producer: str) -> None:
    """Drop the answers in flight to a producer."""
    for envelope in list(world.network.pending):
        if isinstance(envelope.payload, ProduceResponse) and envelope.target == producer:
            world.network.take(envelope)
            world.lose(envelope)


def lose_requests(world: World, producer: str, *places: int) -> None:
    """Drop some of a producer's requests in flight."""
    sent = [
        one
        for one in world.network.pending
        if isinstance(one.payload, ProduceRequest) and one.source == producer
    ]
    for place in places:
        world.network.take(sent[place])
        world.lose(sent[place])


def elect(world: World, name: str) -> None:
    controller = world.controller
    controller.run(controller.core.elect(world.partition, world.brokers[name].id))
    world.settle()


def test_acks_0_takes_everything_for_written_without_an_answer() -> None:
    world = world_of()
    producer = producer_of(world, acks=0)
    world.held["p"] = None
    producer.send(["m0"])
    assert acknowledgement(world, "m0").status is Status.ACKNOWLEDGED
    assert labels(world, "A") == []
    del world.held["p"]
    world.settle()
    assert labels(world, "A") == ["m0"]
    assert kinds(world, "acknowledged", "refused", "unanswered") == []


def test_acks_1_is_answered_by_the_leader_alone() -> None:
    world = world_of()
    producer_of(world, acks=1).send(["m0"])
    world.pump()
    assert acknowledgement(world, "m0").status is Status.ACKNOWLEDGED
    assert labels(world, "B") == []


def test_acks_all_waits_for_the_whole_isr() -> None:
    world = world_of("ABC")
    producer_of(world).send(["m0"])
    world.settle(["A", "B"])
    assert acknowledgement(world, "m0").status is Status.SENT
    world.settle()
    assert acknowledgement(world, "m0").status is Status.ACKNOWLEDGED
    assert acknowledgement(world, "m0").offset == 0


def test_records_sent_together_get_one_answer_and_an_offset_each() -> None:
    world = world_of()
    producer = producer_of(world, acks=1)
    producer.send(["m0"])
    producer.send(["m1", "m2"], together=True)
    world.pump()
    assert [acknowledgement(world, label).offset for label in ("m0", "m1", "m2")] == [0, 1, 2]
    assert len(world.brokers["A"].disk.batches) == 2


def test_a_producer_with_stale_metadata_retries_and_loses_nothing() -> None:
    world = world_of("ABC")
    producer = producer_of(world, retries=1)
    producer.send(["m0"])
    world.settle()
    elect(world, "B")
    producer.send(["m1"])
    world.settle()
    (refused,) = kinds(world, "refused")
    assert (refused.broker, refused.numbers["error"]) == (1, "NOT_LEADER_OR_FOLLOWER")
    assert producer.leader == "B"
    assert acknowledgement(world, "m1").status is Status.ACKNOWLEDGED
    assert labels(world, "B") == ["m0", "m1"]


def test_without_retries_the_first_error_is_the_last_word() -> None:
    world = world_of("ABC")
    producer = producer_of(world)
    producer.leader = "B"
    producer.send(["m0"])
    world.settle()
    assert acknowledgement(world, "m0").status is Status.REFUSED
    assert acknowledgement(world, "m0").error == "NOT_LEADER_OR_FOLLOWER"
    assert labels(world, "A") == []
    assert producer.under_way == {}


def test_retries_come_to_an_end() -> None:
    world = world_of("ABC", min_insync_replicas=3)
    world.settle()
    world.expire_session("C")
    world.settle()
    producer_of(world, retries=3).send(["m0"])
    world.settle()
    errors = [event.numbers["error"] for event in kinds(world, "refused")]
    assert errors == ["NOT_ENOUGH_REPLICAS"] * 4
    assert acknowledgement(world, "m0").status is Status.REFUSED
    assert labels(world, "A") == [], "refused before the append"


def test_a_producer_gets_an_error_without_a_leader() -> None:
    world = world_of("A")
    crash(world, "A")
    producer_of(world).send(["m0"])
    assert acknowledgement(world, "m0").error == "LEADER_NOT_AVAILABLE"


def test_no_answer_is_neither_an_acknowledgement_nor_a_refusal() -> None:
    world = world_of()
    producer = producer_of(world)
    producer.send(["m0"])
    world.pump()
    crash(world, "A")
    assert acknowledgement(world, "m0").status is Status.UNANSWERED
    assert len(kinds(world, "unanswered")) == 1


@pytest.mark.parametrize("timeout_ms", [400, 1_000])
def test_a_producer_waits_for_its_answer_just_as_long_as_it_may(timeout_ms: int) -> None:
    world = world_of("ABC")
    producer = producer_of(world, request_timeout_ms=timeout_ms)
    producer.send(["m0"])
    world.advance(timeout_ms - 1)
    assert acknowledgement(world, "m0").status is Status.SENT
    world.advance(1)
    assert acknowledgement(world, "m0").status is Status.UNANSWERED


@pytest.mark.parametrize(("idempotent", "copies"), [(False, 2), (True, 1)])
def test_a_retry_after_a_lost_answer(idempotent: bool, copies: int) -> None:
    world = world_of()
    producer = producer_of(world, acks=1, retries=1, idempotent=idempotent, producer_id=7)
    producer.send(["m0"])
    world.held["p"] = None
    (request,) = world.network.between("p", "A")
    world.deliver(request)
    lose_answers(world, "p")
    del world.held["p"]
    assert acknowledgement(world, "m0").status is Status.UNANSWERED
    producer.retry()
    world.pump()
    assert labels(world, "A") == ["m0"] * copies
    assert acknowledgement(world, "m0").status is Status.ACKNOWLEDGED
    assert acknowledgement(world, "m0").offset == copies - 1
    assert len(kinds(world, "duplicate")) == 2 - copies
    assert verdict_of(world).outcome == ("kept" if idempotent else "duplicated")


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_batch_that_overtakes_another(idempotent: bool) -> None:
    world = world_of()
    producer = producer_of(world, acks=1, retries=5, idempotent=idempotent, producer_id=7)
    producer.send(["first"])
    world.pump()
    producer.send(["m0", "m1", "m2"])
    lose_requests(world, "p", 0)
    world.pump()
    producer.retry()
    world.pump()
    if idempotent:
        assert labels(world, "A") == ["first", "m0", "m1", "m2"]
        assert verdict_of(world).reordered == ()
        errors = {event.numbers["error"] for event in kinds(world, "refused")}
        assert errors == {"OUT_OF_ORDER_SEQUENCE_NUMBER"}
    else:
        assert labels(world, "A") == ["first", "m1", "m2", "m0"]
        assert verdict_of(world).reordered == ("m0",)
    statuses = {acknowledgement(world, label).status for label in ("m0", "m1", "m2")}
    assert statuses == {Status.ACKNOWLEDGED}


def test_an_unknown_producer_may_begin_anywhere_and_is_refused_what_it_skipped() -> None:
    # As in Kafka: retention may have deleted all that an unknown producer ever wrote.
    world = world_of()
    producer = producer_of(world, acks=1, retries=5, idempotent=True, producer_id=7)
    producer.send(["m0", "m1"])
    lose_requests(world, "p", 0)
    world.pump()
    producer.retry()
    world.pump()
    assert labels(world, "A") == ["m1"]
    assert acknowledgement(world, "m0").error == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_a_producer_sends_nothing_during_its_back_off() -> None:
    world = world_of("ABC")
    producer = producer_of(world, retries=3, retries_immediately=False)
    producer.leader = "B"
    producer.send(["m0"])
    world.settle()
    assert len(kinds(world, "sent")) == 1
    producer.retry()
    world.settle()
    assert len(kinds(world, "sent")) == 2
    assert acknowledgement(world, "m0").status is Status.ACKNOWLEDGED


def test_an_application_that_looks_sends_again_what_was_refused() -> None:
    world = world_of("ABC")
    producer = producer_of(world)
    producer.leader = "B"
    producer.send(["m0"])
    world.settle()
    producer.resend()
    world.settle()
    assert acknowledgement(world, "m0").status is Status.ACKNOWLEDGED
    assert labels(world, "A") == ["m0"]


def test_fire_and_forget_does_not_know_what_it_lost() -> None:
    world = world_of("ABC")
    producer = producer_of(world, ignores_answers=True)
    producer.leader = "B"
    producer.send(["m0"])
    world.settle()
    producer.resend()
    world.settle()
    verdict = verdict_of(world)
    assert (verdict.outcome, verdict.producer_lost) == ("lost-at-producer", ("m0",))
    assert verdict.verdict == "beyond the guarantee"
    assert labels(world, "A") == []


def test_a_late_answer_to_a_batch_that_was_given_up_changes_nothing() -> None:
    world = world_of("ABC", min_insync_replicas=1)
    producer = producer_of(world, acks=1, retries=1)
    producer.send(["m0"])
    world.held["p"] = None
    (request,) = world.network.between("p", "A")
    world.deliver(request)
    (first,) = world.network.between("A", "p")
    producer.connection_lost(0)
    producer.retry()
    (again,) = world.network.between("p", "A")
    world.deliver(again)
    del world.held["p"]
    world.pump()
    offset = first.payload.base_offset  # type: ignore[union-attr]
    assert acknowledgement(world, "m0").offset == offset
    assert len(kinds(world, "acknowledged")) == 1
