"""A coordinator shard: loading, serving, unloading, and what it describes meanwhile."""

from __future__ import annotations

import pytest

from holdfast.core.groups import (
    MOVES,
    AnswerCommit,
    AnswerDelete,
    AnswerJoin,
    AnswerLeave,
    AnswerOffsetDelete,
    AnswerSync,
    Caller,
    Commit,
    Effects,
    Groups,
    GroupSettings,
    GroupState,
    Join,
    Leaver,
    MemberProtocol,
    MemberView,
    Phase,
    Sync,
)
from holdfast.core.groups.deadlines import Deadlines
from holdfast.model import (
    CommittedOffset,
    ErrorCode,
    GroupMetadata,
    GroupRecord,
    MemberMetadata,
    Offset,
    OffsetRecord,
)
from tests.unit.core.groups.support import (
    RANGE,
    T0,
    Coordinator,
    G,
    stable,
    stable_static,
    topics_of,
)


def member(member_id: str, instance: str | None = None) -> MemberMetadata:
    return MemberMetadata(member_id, instance, "c", "/h", 60_000, 10_000, b"topics:t", b"x")


def group_of(*members: MemberMetadata, protocol: str | None = "range") -> GroupRecord:
    leader = members[0].member_id if members else None
    return GroupRecord(G, GroupMetadata("consumer", 5, protocol, leader, 0, members))


def test_a_new_coordinator_goes_on_where_the_old_one_stopped() -> None:
    coordinator = stable("a", "b")
    coordinator.commit(7, coordinator.caller("a"))
    following = Coordinator(records=coordinator.log)
    assert following.groups.describe(G) == coordinator.groups.describe(G)
    assert following.offset() == 7
    assert following.heartbeat("a") is ErrorCode.NONE
    assert following.sync_error(following.sync("b")) is ErrorCode.NONE
    waiter = following.delete_offsets(T0)
    results = following.answer(waiter, AnswerOffsetDelete).results
    assert results == ((T0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),)


def test_sessions_begin_again_with_the_new_coordinator() -> None:
    coordinator = stable("a")
    following = Coordinator(records=coordinator.log, now_ms=coordinator.now_ms + 3_600_000)
    following.pass_time(9_999)
    assert following.state() is GroupState.STABLE
    following.pass_time(1)
    assert following.state() is GroupState.EMPTY


def test_static_members_and_tombstones_are_read_back() -> None:
    coordinator = stable_static("i")
    following = Coordinator(records=coordinator.log)
    assert following.joined(following.join(new_id="i-9", instance="i")).generation == 1
    coordinator.leave("i-1")
    coordinator.commit(3)
    coordinator.delete()
    following = Coordinator(records=coordinator.log)
    assert following.groups.list_groups() == ()
    assert following.offset() is None


def test_offsets_make_a_group_whatever_the_order_of_records() -> None:
    offset = OffsetRecord(G, T0, CommittedOffset(Offset(1)))
    coordinator = Coordinator(records=[offset, GroupRecord(G, None)])
    assert coordinator.state() is GroupState.EMPTY
    assert coordinator.offset() == 1


def test_a_stored_leader_that_is_no_member_is_replaced() -> None:
    metadata = GroupMetadata("consumer", 5, "range", "gone", 0, (member("a"),))
    assert Coordinator(records=[GroupRecord(G, metadata)]).group.leader == "a"


def test_an_old_record_has_the_session_timeout_for_the_rebalance_timeout() -> None:
    old = member("a")._replace(rebalance_timeout_ms=-1)
    assert Coordinator(records=[group_of(old)]).group.rebalance_timeout_ms == 10_000


@pytest.mark.parametrize(
    "record",
    [
        group_of(member("a"), protocol=None),
        group_of(member("a"), member("a")),
        group_of(member("a", "i"), member("b", "i")),
        GroupRecord(G, GroupMetadata("consumer", -1, "range", "a", 0, (member("a"),))),
    ],
)
def test_an_invalid_record_changes_nothing_and_returns_the_reason(record: GroupRecord) -> None:
    coordinator = Coordinator(records=[group_of(member("good")), record])
    assert coordinator.skipped[0] is None
    assert coordinator.skipped[1]
    assert list(coordinator.group.members) == ["good"]


# While loading, and after.

JOIN = Join(G, "", "new", "c", "/h", 10_000, 60_000, "consumer", (RANGE,))
COMMIT = Commit(Caller(G, ""), ((T0, CommittedOffset(Offset(1))),))


def all_requests(groups: Groups) -> list[Effects]:
    return [
        groups.join(JOIN, 1, 0),
        groups.sync(Sync(Caller(G, "a", 1)), 1, 0),
        groups.leave(G, (Leaver("a"),), 1, 0),
        groups.commit_offsets(COMMIT, 1, 0),
        groups.delete_offsets(G, (T0,), 1, 0),
        groups.delete_group(G, 1, 0),
    ]


def errors(answers: list[Effects]) -> list[ErrorCode]:
    found = []
    for [answer] in answers:
        match answer:
            case AnswerJoin():
                found.append(answer.answer.error)
            case AnswerCommit():
                found.append(answer.results[0][1])
            case AnswerSync() | AnswerLeave() | AnswerOffsetDelete() | AnswerDelete():
                found.append(answer.error)
            case _:
                raise AssertionError(answer)
    return found


def test_a_loading_coordinator_asks_to_wait() -> None:
    groups = Groups(GroupSettings(), topics_of)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    # SyncGroup: the rebalance it belongs to is lost, so the member must join again.
    expected = [loading, ErrorCode.REBALANCE_IN_PROGRESS, *[loading] * 4]
    assert errors(all_requests(groups)) == expected
    assert groups.heartbeat(Caller(G, "a", 1), 0) is ErrorCode.NONE
    assert groups.fetch_offsets(G).error is loading
    assert groups.describe(G).error is loading
    assert (groups.phase, groups.error) == (Phase.LOADING, loading)
    assert groups.tick(10**9) == ()
    assert groups.next_deadline_ms() is None


def test_an_unloaded_coordinator_answers_not_coordinator() -> None:
    coordinator = stable("a")
    assert coordinator.groups.unload() == ()
    elsewhere = ErrorCode.NOT_COORDINATOR
    assert errors(all_requests(coordinator.groups)) == [elsewhere] * 6
    assert coordinator.groups.heartbeat(Caller(G, "a", 1), 0) is elsewhere
    assert coordinator.groups.fetch_offsets(G).error is elsewhere
    assert coordinator.groups.list_groups() == ()
    assert coordinator.groups.tick(10**9) == ()
    assert coordinator.groups.partitions_deleted((T0,), 0) == ()


def test_waiting_requests_are_answered_not_coordinator() -> None:
    coordinator = stable("a", "b")
    coordinator.holds_writes = True
    waiting = [
        coordinator.commit(1, coordinator.caller("a")),
        coordinator.join("a"),
    ]
    other = Coordinator()
    other.holds_writes = True
    other.join(new_id="a")
    syncing = other.sync("a", {})
    coordinator.run(coordinator.groups.unload())
    other.run(other.groups.unload())
    assert coordinator.commit_errors(waiting[0]) == [ErrorCode.NOT_COORDINATOR]
    assert coordinator.join_error(waiting[1]) is ErrorCode.NOT_COORDINATOR
    assert other.sync_error(syncing) is ErrorCode.NOT_COORDINATOR
    # Verdicts that come too late are nobody's affair.
    coordinator.finish()
    other.finish(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_deletion_under_way_is_answered_by_the_unload() -> None:
    coordinator = Coordinator()
    coordinator.commit(1)
    coordinator.holds_writes = True
    waiter = coordinator.delete()
    coordinator.run(coordinator.groups.unload())
    assert coordinator.answer(waiter, AnswerDelete).error is ErrorCode.NOT_COORDINATOR


# Onlookers.


def test_a_stable_group_shows_metadata_and_assignments() -> None:
    view = stable("a").groups.describe(G)
    assert (view.state, view.protocol_type, view.protocol_name) == (
        GroupState.STABLE,
        "consumer",
        "range",
    )
    shown = MemberView("a", None, "client", "/127.0.0.1", RANGE.metadata, b"a")
    assert view.members == (shown,)


def test_a_group_in_motion_shows_no_metadata() -> None:
    coordinator = stable("a", "b")
    coordinator.join("a")
    view = coordinator.groups.describe(G)
    assert view.protocol_name == ""
    assert [each.metadata for each in view.members] == [b"", b""]


def test_a_missing_group_is_dead() -> None:
    view = Coordinator().groups.describe("nobody")
    assert (view.error, view.state) == (ErrorCode.GROUP_ID_NOT_FOUND, GroupState.DEAD)


# The small parts.


def test_every_state_can_be_left() -> None:
    assert set(MOVES) == set(GroupState)
    assert all(MOVES.values())


def test_an_illegal_move_is_our_own_bug() -> None:
    with pytest.raises(AssertionError):
        stable("a").group.move_to(GroupState.COMPLETING_REBALANCE, 0)


def test_a_member_must_know_the_protocol_it_is_asked_about() -> None:
    coordinator = stable("a")
    with pytest.raises(AssertionError, match="does not know"):
        coordinator.group.members["a"].metadata("unheard-of")
    assert coordinator.group.members["a"].protocols == (MemberProtocol("range", b"topics:t"),)


def test_deadlines_give_each_group_once_and_only_what_is_due() -> None:
    deadlines = Deadlines()
    deadlines.note("a", 30)
    deadlines.note("b", 20)
    deadlines.note("a", 10)
    deadlines.note("a", 40)
    deadlines.note("c", None)
    assert deadlines.next_ms() == 10
    assert deadlines.covers("a", 40)
    assert not deadlines.covers("c", 1)
    assert deadlines.take_due(25) == ["a", "b"]
    assert deadlines.next_ms() is None
    assert deadlines.take_due(100) == []
