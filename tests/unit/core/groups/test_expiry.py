"""Offsets are kept while a group has members, and for the retention after that (KIP-211)."""

from __future__ import annotations

from holdfast.core.groups import GroupSettings, GroupState, MemberProtocol
from holdfast.model import ErrorCode, GroupRecord
from tests.unit.core.groups.support import T0, U0, Coordinator, G, stable

MINUTE = 60_000
SETTINGS = GroupSettings(
    group_initial_rebalance_delay_ms=0,
    offsets_retention_minutes=10,
    offsets_retention_check_interval_ms=MINUTE,
)


def live(coordinator: Coordinator, minutes: int) -> None:
    """Time passes with heartbeats from all members."""
    for _ in range(minutes * 12):
        for member_id in tuple(coordinator.group.members):
            coordinator.heartbeat(member_id)
        coordinator.pass_time(5_000)


def test_a_simple_consumers_offsets_expire_by_their_commit() -> None:
    coordinator = Coordinator(SETTINGS)
    coordinator.commit(1)
    coordinator.pass_time(5 * MINUTE)
    coordinator.commit(1, partitions=(U0,))
    coordinator.pass_time(5 * MINUTE)
    assert (coordinator.offset(T0), coordinator.offset(U0)) == (None, 1)
    coordinator.pass_time(5 * MINUTE)
    assert coordinator.groups.group(G) is None
    assert coordinator.log[-1] == GroupRecord(G, None)


def test_a_living_group_keeps_what_it_reads() -> None:
    coordinator = stable("a", settings=SETTINGS)
    coordinator.commit(1, coordinator.caller("a"), partitions=(T0, U0))
    live(coordinator, 11)
    assert (coordinator.offset(T0), coordinator.offset(U0)) == (1, None)


def test_a_living_group_that_cannot_be_understood_keeps_all() -> None:
    coordinator = Coordinator(SETTINGS)
    coordinator.join(new_id="a", protocols=(MemberProtocol("range", b"gibberish"),))
    coordinator.settle_group()
    coordinator.commit(1, coordinator.caller("a"), partitions=(U0,))
    live(coordinator, 11)
    assert coordinator.offset(U0) == 1


def test_an_emptied_group_keeps_its_offsets_for_the_retention_from_then_on() -> None:
    coordinator = stable("a", settings=SETTINGS)
    coordinator.commit(1, coordinator.caller("a"))
    live(coordinator, 30)
    coordinator.leave("a")
    coordinator.pass_time(9 * MINUTE)
    assert coordinator.offset() == 1
    coordinator.pass_time(2 * MINUTE)
    assert coordinator.groups.group(G) is None


def test_when_a_group_became_empty_outlives_its_coordinator() -> None:
    coordinator = stable("a", settings=SETTINGS)
    coordinator.commit(1, coordinator.caller("a"))
    coordinator.leave("a")
    coordinator.pass_time(9 * MINUTE)
    following = Coordinator(SETTINGS, coordinator.log, coordinator.now_ms)
    assert following.offset() == 1
    following.pass_time(2 * MINUTE)
    assert following.groups.group(G) is None


def test_an_offset_with_an_end_of_its_own_expires_then() -> None:
    coordinator = Coordinator(SETTINGS)
    coordinator.commit(1, expire_ms=coordinator.now_ms + 3 * MINUTE)
    coordinator.commit(1, partitions=(U0,), expire_ms=coordinator.now_ms + 30 * MINUTE)
    coordinator.pass_time(3 * MINUTE)
    assert coordinator.offset(T0) is None
    coordinator.pass_time(20 * MINUTE)
    assert coordinator.offset(U0) == 1


def test_a_group_that_never_came_to_be_is_cleared_away() -> None:
    coordinator = Coordinator(SETTINGS)
    coordinator.join(new_id="a", requires_member_id=True)
    assert coordinator.state() is GroupState.EMPTY
    coordinator.pass_time(2 * MINUTE)
    assert coordinator.groups.group(G) is None


def test_an_offset_that_is_being_committed_does_not_expire() -> None:
    coordinator = Coordinator(SETTINGS)
    coordinator.commit(1)
    coordinator.pass_time(10 * MINUTE - 1)
    coordinator.holds_writes = True
    coordinator.commit(2)
    coordinator.pass_time(1)
    assert len(coordinator.writes) == 1
    coordinator.finish()
    assert coordinator.offset() == 2


def test_expiry_that_is_refused_is_tried_again() -> None:
    coordinator = Coordinator(SETTINGS)
    coordinator.commit(1)
    coordinator.holds_writes = True
    coordinator.pass_time(10 * MINUTE)
    coordinator.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert coordinator.offset() == 1
    coordinator.holds_writes = False
    coordinator.pass_time(MINUTE)
    assert coordinator.groups.group(G) is None
