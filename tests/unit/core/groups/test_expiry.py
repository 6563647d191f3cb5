"""Offsets are kept while a group lives and the retention longer (KIP-211)."""

from __future__ import annotations

from holdfast.core.groups import GroupSettings, GroupState, MemberProtocol
from holdfast.model import ErrorCode, GroupRecord
from tests.unit.core.groups.support import T0, U0, G, Office, stable

MINUTE = 60_000
SETTINGS = GroupSettings(
    group_initial_rebalance_delay_ms=0,
    offsets_retention_minutes=10,
    offsets_retention_check_interval_ms=MINUTE,
)


def live(office: Office, minutes: int) -> None:
    """Time passes with heartbeats from all members."""
    for _ in range(minutes * 12):
        for member_id in tuple(office.group.members):
            office.heartbeat(member_id)
        office.pass_time(5_000)


def test_a_simple_consumers_offsets_expire_by_their_commit() -> None:
    office = Office(SETTINGS)
    office.commit(1)
    office.pass_time(5 * MINUTE)
    office.commit(1, partitions=(U0,))
    office.pass_time(5 * MINUTE)
    assert (office.offset(T0), office.offset(U0)) == (None, 1)
    office.pass_time(5 * MINUTE)
    assert office.groups.group(G) is None
    assert office.log[-1] == GroupRecord(G, None)


def test_a_living_group_keeps_what_it_reads() -> None:
    office = stable("a", settings=SETTINGS)
    office.commit(1, office.caller("a"), partitions=(T0, U0))
    live(office, 11)
    assert (office.offset(T0), office.offset(U0)) == (1, None)


def test_a_living_group_that_cannot_be_understood_keeps_all() -> None:
    office = Office(SETTINGS)
    office.join(new_id="a", protocols=(MemberProtocol("range", b"gibberish"),))
    office.settle_group()
    office.commit(1, office.caller("a"), partitions=(U0,))
    live(office, 11)
    assert office.offset(U0) == 1


def test_an_emptied_group_keeps_its_offsets_for_the_retention_from_then_on() -> None:
    office = stable("a", settings=SETTINGS)
    office.commit(1, office.caller("a"))
    live(office, 30)
    office.leave("a")
    office.pass_time(9 * MINUTE)
    assert office.offset() == 1
    office.pass_time(2 * MINUTE)
    assert office.groups.group(G) is None


def test_when_a_group_became_empty_outlives_its_coordinator() -> None:
    office = stable("a", settings=SETTINGS)
    office.commit(1, office.caller("a"))
    office.leave("a")
    office.pass_time(9 * MINUTE)
    following = Office(SETTINGS, office.log, office.now_ms)
    assert following.offset() == 1
    following.pass_time(2 * MINUTE)
    assert following.groups.group(G) is None


def test_an_offset_with_an_end_of_its_own_expires_then() -> None:
    office = Office(SETTINGS)
    office.commit(1, expire_ms=office.now_ms + 3 * MINUTE)
    office.commit(1, partitions=(U0,), expire_ms=office.now_ms + 30 * MINUTE)
    office.pass_time(3 * MINUTE)
    assert office.offset(T0) is None
    office.pass_time(20 * MINUTE)
    assert office.offset(U0) == 1


def test_a_group_that_never_came_to_be_is_cleared_away() -> None:
    office = Office(SETTINGS)
    office.join(new_id="a", requires_member_id=True)
    assert office.state() is GroupState.EMPTY
    office.pass_time(2 * MINUTE)
    assert office.groups.group(G) is None


def test_an_offset_that_is_being_committed_does_not_expire() -> None:
    office = Office(SETTINGS)
    office.commit(1)
    office.pass_time(10 * MINUTE - 1)
    office.holds_writes = True
    office.commit(2)
    office.pass_time(1)
    assert len(office.writes) == 1
    office.finish()
    assert office.offset() == 2


def test_expiry_that_is_refused_is_tried_again() -> None:
    office = Office(SETTINGS)
    office.commit(1)
    office.holds_writes = True
    office.pass_time(10 * MINUTE)
    office.finish(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert office.offset() == 1
    office.holds_writes = False
    office.pass_time(MINUTE)
    assert office.groups.group(G) is None
