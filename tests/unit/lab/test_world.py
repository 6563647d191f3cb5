"""The simulated world: time, messages, sessions, and brokers that fail and come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.core import FlushRule
from holdfast.lab.world.client_history import Status
from holdfast.lab.world.messages import FetchRequest
from holdfast.lab.world.world import World
from holdfast.model import ErrorCode
from tests.unit.lab.worlds import (
    acknowledgement,
    crash,
    kinds,
    labels,
    lose_power,
    producer_of,
    world_of,
)


def isr_of(world: World) -> list[str]:
    return [world.name_of(one) for one in world.partition_state().isr]


def answered_at(world: World) -> list[int]:
    return [event.t for event in kinds(world, "fetch-answered")]


def test_a_world_begins_with_a_leader_everyone_knows() -> None:
    world = world_of("ABC")
    assert world.recorder.events[0].kind == "begins"
    assert world.true_leader() is world.brokers["A"]
    assert isr_of(world) == ["A", "B", "C"]
    asked = [one for one in world.network.pending if isinstance(one.payload, FetchRequest)]
    assert [(one.source, one.target) for one in asked] == [("B", "A"), ("C", "A")]


def test_nothing_moves_by_itself() -> None:
    world = world_of()
    before = list(world.network.pending)
    world.advance(90)
    assert world.network.pending == before
    assert world.now_ms == 90


def test_timers_fire_in_order_and_time_ends_where_asked() -> None:
    world = world_of()
    rung: list[tuple[str, int]] = []

    def ring(name: str) -> Callable[[], None]:
        return lambda: rung.append((name, world.now_ms))

    for name, delay in (("late", 70), ("early", 20), ("also late", 70), ("too late", 81)):
        world.later(delay, ring(name))
    world.advance(80)
    assert rung == [("early", 20), ("late", 70), ("also late", 70)]
    assert world.now_ms == 80
    world.advance(1)
    assert rung[-1] == ("too late", 81)


def test_settling_among_some_leaves_the_others_alone() -> None:
    world = world_of("ABC")
    producer_of(world, acks=1).send(["m0"])
    world.settle(["A", "B"])
    assert (labels(world, "B"), labels(world, "C")) == (["m0"], [])
    assert {one.source for one in world.network.pending} == {"C"}


def test_every_event_names_an_earlier_one_as_its_cause() -> None:
    world = world_of("ABC")
    producer_of(world).send(["m0", "m1"])
    world.settle()
    events = world.recorder.events
    assert [event.id for event in events] == list(range(len(events)))
    assert all(event.why is None or event.why < event.id for event in events)
    (acknowledged, _) = kinds(world, "acknowledged")
    chain = [acknowledged]
    while (why := chain[-1].why) is not None:
        chain.append(events[why])
    assert {"fetched", "fetch-sent", "appended"} <= {event.kind for event in chain}


@pytest.mark.parametrize("wait_ms", [1, 99, 250, 500, 1001])
@pytest.mark.parametrize("arrival_ms", [0, 37, 100])
def test_a_parked_fetch_is_answered_never_earlier_and_never_later(
    wait_ms: int, arrival_ms: int
) -> None:
    world = world_of(replica_fetch_wait_max_ms=wait_ms)
    world.advance(arrival_ms)
    world.settle()
    assert [event.t for event in kinds(world, "fetch-parked")] == [arrival_ms]
    world.advance(wait_ms - 1)
    assert answered_at(world) == []
    world.advance(1)
    assert answered_at(world) == [arrival_ms + wait_ms]
    world.advance(5_000)
    assert len(answered_at(world)) == 1, "an answered request waits no longer"


def test_an_append_wakes_a_parked_fetch_at_once() -> None:
    world = world_of()
    world.settle()
    world.advance(123)
    producer_of(world, acks=1).send(["m0"])
    world.pump()
    (answer,) = kinds(world, "fetch-answered")
    assert (answer.t, answer.numbers["end_offset"]) == (123, 1)
    world.settle()
    assert labels(world, "B") == ["m0"]


def test_a_parked_fetch_dies_with_its_follower() -> None:
    world = world_of()
    world.settle()
    crash(world, "B")
    world.advance(1_000)
    assert answered_at(world) == []


def test_a_new_request_takes_the_place_of_a_parked_one() -> None:
    world = world_of()
    world.settle()
    world.advance(300)
    follower = world.brokers["B"]
    assert follower.outstanding is not None
    follower.connection_lost(follower.outstanding.number)
    world.advance(100)
    world.settle()
    assert [event.t for event in kinds(world, "fetch-parked")] == [0, 400]
    world.advance(1_000)
    assert answered_at(world) == [900]


def test_a_broker_whose_session_ends_loses_its_leadership() -> None:
    world = world_of("ABC")
    world.settle()
    world.expire_session("A")
    world.settle(["B", "C", "controller-1"])
    assert world.leader_name() == "B"
    assert isr_of(world) == ["B", "C"]
    assert world.brokers["A"].replica.presumes_leadership, "it has no message yet"
    world.expire_session("A")
    assert len(kinds(world, "session-expired")) == 1


def test_a_running_broker_registers_again_and_rejoins() -> None:
    world = world_of("ABC")
    world.settle()
    before = world.brokers["A"].incarnation.broker_epoch
    world.expire_session("A")
    world.brokers["A"].session_lost()
    world.settle()
    assert world.brokers["A"].incarnation.broker_epoch > before
    assert world.leader_name() == "B"
    assert isr_of(world) == ["B", "C", "A"]


def test_a_registration_that_gets_lost_is_tried_again() -> None:
    world = world_of()
    crash(world, "B")
    world.network.disconnect(["B"], ["store"])
    world.brokers["B"].start()
    world.pump()
    assert world.brokers["B"].incarnation.broker_epoch == -1
    world.network.reconnect()
    world.advance(100)
    assert world.brokers["B"].incarnation.broker_epoch > 0


def test_a_crash_keeps_what_was_written_and_power_loss_what_was_flushed() -> None:
    world = world_of("ABC", min_insync_replicas=2)
    producer = producer_of(world)
    producer.send(["m0"])
    world.settle()
    for name in "BC":
        world.brokers[name].flush(world.brokers[name].disk.end_offset)
    producer.send(["m1"])
    world.settle()
    crash(world, "B")
    assert lose_power(world, "C") == ["m1"]
    for name in "BC":
        world.brokers[name].start()
    restarted = {event.broker: event.numbers for event in kinds(world, "restarted")}
    assert restarted[2]["log_end_offset"] == 2
    assert restarted[3]["log_end_offset"] == 1
    assert not restarted[2]["clean"]


def test_a_clean_stop_flushes_everything_and_says_so() -> None:
    world = world_of("ABC")
    producer_of(world).send(["m0"])
    world.settle()
    stopped = world.brokers["B"]
    since = stopped.incarnation.intact_since
    stopped.stop()
    world.break_connections("B")
    world.expire_session("B")
    assert stopped.disk.flushed_offset == stopped.disk.end_offset == 1
    stopped.start()
    world.settle()
    (restarted,) = kinds(world, "restarted")
    assert restarted.numbers["clean"]
    assert stopped.incarnation.intact_since == since


def test_a_dead_broker_receives_and_sends_nothing() -> None:
    world = world_of(flush_rule=FlushRule.EVERY_APPEND)
    world.settle()
    crash(world, "A")
    count = len(world.recorder.events)
    producer_of(world, acks=1).send(["m0"], to="A")
    world.pump()
    assert [event.kind for event in world.recorder.events[count:]] == [
        "sent",
        "message-lost",
        "unanswered",
    ]
    world.brokers["A"].tick()
    world.brokers["A"].maybe_fetch()
    assert len(world.recorder.events) == count + 3


def test_the_page_cache_of_a_dead_process_can_still_reach_the_disk() -> None:
    world = world_of("A")
    producer_of(world, acks=1).send(["m0"])
    world.pump()
    crash(world, "A")
    broker = world.brokers["A"]
    broker.flush(broker.disk.end_offset)
    assert broker.disk.flushed_offset == 1
    assert broker.replica.log.flushed_offset == 0, "the dead process does not learn of it"
    assert broker.disk.lose_power() == []


def test_a_process_that_stands_still_does_not_see_time_pass() -> None:
    world = world_of("ABC", replica_lag_time_max_ms=1_000, min_insync_replicas=1)
    world.settle()
    for name in ("A", "B", "C"):
        world.brokers[name].paused = True
    producer_of(world, acks=1).send(["m0"])
    world.advance(5_000)
    assert kinds(world, "appended", "isr-proposed") == []
    for name in ("A", "B", "C"):
        world.brokers[name].paused = False
    world.settle()
    assert labels(world, "C") == ["m0"]


@pytest.mark.parametrize(
    ("rule", "flushed"),
    [
        ({"flush_rule": FlushRule.PAGE_CACHE}, [0, 0, 0, 0]),
        ({"flush_rule": FlushRule.EVERY_APPEND}, [1, 2, 3, 3]),
        (
            {"flush_rule": FlushRule.EVERY_N_MESSAGES, "log_flush_interval_messages": 2},
            [0, 2, 2, 2],
        ),
        ({"flush_rule": FlushRule.EVERY_T_MS, "log_flush_interval_ms": 400}, [0, 0, 0, 3]),
    ],
)
def test_the_flush_rule_says_when_a_log_reaches_the_disk(
    rule: dict[str, Any], flushed: list[int]
) -> None:
    world = world_of("A", min_insync_replicas=1, **rule)
    producer = producer_of(world, acks=1)
    found = []
    for label in ("m0", "m1", "m2"):
        producer.send([label])
        world.pump()
        found.append(int(world.brokers["A"].disk.flushed_offset))
    world.advance(400)
    assert [*found, world.brokers["A"].disk.flushed_offset] == flushed


def test_a_leader_whose_disk_fails_goes_offline_and_accepts_nothing_more() -> None:
    world = world_of("ABC")
    world.settle()
    leader = world.brokers["A"]
    leader.disk.fails = "no space left on device"
    producer = producer_of(world)
    producer.send(["m0", "m1"])
    world.pump()
    assert [event.numbers["error"] for event in kinds(world, "disk-failed")] == [
        "no space left on device"
    ]
    assert leader.replica.has_failed
    assert labels(world, "A") == []
    assert {acknowledgement(world, label).status for label in ("m0", "m1")} == {Status.REFUSED}
    leader.disk.fails = ""
    producer.send(["m2"])
    world.pump()
    assert acknowledgement(world, "m2").error == ErrorCode.KAFKA_STORAGE_ERROR.name
    assert labels(world, "A") == []


def test_a_follower_whose_disk_fails_drops_out() -> None:
    world = world_of("ABC", replica_lag_time_max_ms=1_000)
    world.settle()
    world.brokers["C"].disk.fails = "input/output error"
    producer_of(world).send(["m0"])
    world.settle()
    assert acknowledgement(world, "m0").status is Status.SENT, "C is still in the ISR"
    world.advance(2_000, flowing=True)
    assert isr_of(world) == ["A", "B"]
    assert acknowledgement(world, "m0").status is Status.ACKNOWLEDGED


def test_a_former_controller_is_refused_by_brokers_and_by_the_store() -> None:
    world = world_of("ABC")
    world.settle()
    former = world.controller
    former.paused = True
    world.new_controller()
    world.settle()
    former.paused = False
    former.run(former.core.elect(world.partition, world.brokers["C"].id))
    world.settle()
    assert world.leader_name() == "A"
    assert not former.alive, "the store refused its write: there is another one"


def test_the_controller_repeats_what_a_broker_has_not_confirmed() -> None:
    world = world_of("ABC")
    world.settle()
    world.network.disconnect([world.controller_name], ["B"])
    world.controller.run(world.controller.core.elect(world.partition, world.brokers["B"].id))
    world.settle()
    assert not world.brokers["B"].replica.presumes_leadership
    world.network.reconnect()
    world.advance(400, flowing=True)
    assert world.true_leader() is world.brokers["B"]


def minimum_of(world: World, name: str) -> int:
    return world.brokers[name].replica.log.settings.min_insync_replicas


def test_brokers_hear_of_settings_from_the_store_now_or_when_they_register() -> None:
    world = world_of("AB", min_insync_replicas=2)
    crash(world, "B")
    world.controller.alter_minimum(1)
    world.pump()
    assert minimum_of(world, "A") == 1
    world.brokers["B"].start()
    assert minimum_of(world, "B") == 2
    world.pump()
    assert minimum_of(world, "B") == 1


def test_a_new_controller_decides_by_the_stored_settings() -> None:
    world = world_of("AB", min_insync_replicas=2)
    world.holds_settings = True
    world.controller.alter_minimum(1)
    world.new_controller()
    world.release_settings()
    assert world.controller.core.settings[world.partition].min_insync_replicas == 1


def test_a_former_controller_cannot_store_settings() -> None:
    world = world_of("AB", min_insync_replicas=2)
    former = world.controller
    world.new_controller()
    former.alter_minimum(1)
    assert not former.alive
    assert world.store.settings.min_insync_replicas == 2
