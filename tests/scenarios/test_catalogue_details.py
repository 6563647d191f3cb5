"""Checks details of single scenarios of the catalogue in their traces."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

from holdfast.lab import Run, fold, load, run_scenario, table
from holdfast.model import TraceEvent


@cache
def played(name: str, variant: str = "default") -> Run:
    scenario = load(name)
    return run_scenario(scenario, scenario.variant(variant))


def kinds(run: Run, *wanted: str) -> list[TraceEvent]:
    return [event for event in run.events if event.kind in wanted]


def values(run: Run, kind: str, number: str) -> list[object]:
    return [event.numbers[number] for event in kinds(run, kind)]


def subsequence(wanted: list[tuple[object, ...]], found: list[tuple[object, ...]]) -> bool:
    """Whether the trace has all these events, in this order."""
    places = iter(found)
    return all(one in places for one in wanted)


def rows(run: Run) -> list[tuple[object, ...]]:
    """A.LEO, A.remote[B], A.HW, B.LEO, B.HW after each step."""
    found: list[tuple[object, ...]] = []
    for row in table(fold(run.events)):
        a, b = row["replicas"]["A"], row["replicas"]["B"]
        found.append((a["leo"], a["remote"]["B"], a["hw"], b["leo"], b["hw"]))
    return found


def test_the_table_of_a_fetch_after_a_produce() -> None:
    expected: list[tuple[object, ...]] = [
        (0, 0, 0, 0, 0),
        (1, 0, 0, 0, 0),
        (1, 0, 0, 0, 0),
        (1, 0, 0, 1, 0),
        (1, 1, 1, 1, 0),
        (1, 1, 1, 1, 1),
    ]
    found = rows(played("sync-fetch-after-produce"))
    assert found[: len(expected)] == expected


def test_the_producer_is_answered_when_the_second_fetch_is_handled() -> None:
    run = played("sync-fetch-after-produce")
    (acknowledged,) = kinds(run, "acknowledged")
    handled = [event.id for event in kinds(run, "fetched")]
    received = [event.id for event in kinds(run, "high-watermark") if event.broker == 2]
    assert handled[1] < acknowledged.id < received[0]


def test_a_parked_fetch_ends_with_the_same_table_and_after_just_the_wait() -> None:
    run = played("sync-parked-fetch")
    assert subsequence([(1, 0, 0, 0, 0), (1, 1, 1, 1, 1)], rows(run))
    parked = kinds(run, "fetch-parked")
    waits = []
    for one in parked:
        answer = next((event for event in kinds(run, "fetch-answered") if event.id > one.id), None)
        if answer is not None:
            waits.append(answer.t - one.t)
    assert 500 in waits, "without an append it is answered after replica.fetch.wait.max.ms"
    assert any(wait < 500 for wait in waits), "an append wakes it"
    assert max(waits) == 500


def test_the_high_watermark_rises_at_once_when_the_slow_member_is_evicted() -> None:
    run = played("hw-follows-slowest-isr-member")
    applied = next(
        event
        for event in kinds(run, "isr-applied", "isr-committed")
        if len(event.numbers["isr"]) == 2
    )
    moved = next(event for event in kinds(run, "high-watermark") if event.id > applied.id)
    answered = next(event for event in kinds(run, "acknowledged") if event.id > applied.id)
    assert moved.t == answered.t == applied.t


@pytest.mark.parametrize("name", ["lag-slow", "lag-stuck"])
def test_a_lagging_follower_is_evicted(name: str) -> None:
    sizes = [len(event.numbers["isr"]) for event in kinds(played(name), "isr-committed")]
    assert 2 in sizes


def test_a_bootstrapping_follower_joins_once_it_has_caught_up() -> None:
    run = played("lag-bootstrapping")
    joined = kinds(run, "isr-committed")[-1]
    assert len(joined.numbers["isr"]) == 3


def test_the_messages_rule_flaps_and_the_time_rule_does_not() -> None:
    sizes = [
        len(event.numbers["isr"])
        for event in kinds(played("lag-messages-flapping", "before"), "isr-committed")
    ]
    turns = sum(1 for one, two in pairwise(sizes) if one != two)
    assert turns >= 3, "again and again"
    assert kinds(played("lag-messages-flapping", "after"), "isr-committed") == []


def test_the_silence_rule_misses_a_follower_that_never_catches_up() -> None:
    assert kinds(played("lag-silence-blind", "before"), "isr-committed") == []
    assert kinds(played("lag-silence-blind", "after"), "isr-committed") != []


def test_a_lost_session_costs_the_leadership_and_the_place_in_the_isr() -> None:
    run = played("session-lost")
    expired = kinds(run, "session-expired")[0]
    elected = next(event for event in kinds(run, "elected") if event.id > expired.id)
    assert elected.numbers["leader"] != expired.broker
    assert expired.broker not in elected.numbers["isr"]


def test_too_few_replicas_are_refused_before_the_append_and_acks_1_is_not() -> None:
    run = played("not-enough-replicas")
    refused = kinds(run, "refused")
    assert {event.numbers["error"] for event in refused} == {"NOT_ENOUGH_REPLICAS"}
    assert {event.numbers["offset"] for event in refused} == {None}
    assert 1 in values(run, "acknowledged", "acks")


def test_a_shrinking_isr_is_an_error_after_the_append() -> None:
    run = played("not-enough-replicas-after-append", "no-retry")
    (refused,) = kinds(run, "refused")
    assert refused.numbers["error"] == "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    assert refused.numbers["offset"] is not None
    assert run.verdict.refused_kept == (refused.numbers["record"],)
    assert kinds(played("not-enough-replicas-after-append", "after"), "duplicate") != []


def test_there_is_no_unclean_election_unless_it_is_enabled() -> None:
    off = played("election-none-clean")
    assert None in values(off, "elected", "leader"), "offline for a while"
    assert "unclean" not in values(off, "elected", "rule")
    assert "unclean" in values(played("election-unclean", "before"), "elected", "rule")
    assert "unclean" not in values(played("election-unclean", "after"), "elected", "rule")


@pytest.mark.parametrize("name", ["divergence-unclean", "divergence-power-loss"])
def test_two_logs_differ_at_offset_1_below_both_high_watermarks(name: str) -> None:
    run = played(name, "before")
    assert run.verdict.diverged == (1,)
    last = fold(run.events)[-1].snapshot.replicas
    ends = {view.name: (view.log_end_offset, view.high_watermark) for view in last}
    assert (ends["A"], ends["B"]) == ((2, 2), (2, 2))
    after = fold(played(name, "after").events)[-1].snapshot.replicas
    logs = {tuple(view.cells) for view in after if view.name in ("A", "B")}
    assert len(logs) == 1, "equal logs"


def test_records_of_an_ended_leader_epoch_stay_without_a_fence() -> None:
    assert played("zombie-fetcher", "before").verdict.diverged == tuple(range(40, 50))


def test_a_reader_whose_position_was_truncated_once_got_no_error() -> None:
    assert kinds(played("consumer-truncation", "before"), "read-refused") == []


def test_a_reader_ahead_of_a_follower_waits_instead_of_going_back() -> None:
    after = played("follower-read-behind", "after")
    assert "OFFSET_NOT_AVAILABLE" in values(after, "read-refused", "error")
    offsets = [event.numbers["offset"] for event in kinds(after, "consumed")]
    assert offsets == sorted(offsets)
    before = [
        event.numbers["offset"]
        for event in kinds(played("follower-read-behind", "before"), "consumed")
    ]
    assert before != sorted(before) or len(before) != len(set(before))


def test_all_isr_changes_fail_for_ever_unless_the_agreed_state_is_read_again() -> None:
    def after_the_first_refusal(variant: str) -> tuple[int, int]:
        run = played("stale-partition-version", variant)
        refused = kinds(run, "isr-refused")
        first = refused[0].id
        return len(refused), len([one for one in kinds(run, "isr-committed") if one.id > first])

    refusals, changes = after_the_first_refusal("before")
    assert (refusals >= 3, changes) == (True, 0)
    refusals, changes = after_the_first_refusal("after")
    assert (refusals, changes > 0) == (1, True)


def test_a_planned_move_needs_no_crash_to_lose_acks_1() -> None:
    run = played("acks1-planned-move", "acks-1")
    assert kinds(run, "crashed", "power-lost", "disk-lost") == []
    assert run.verdict.lost != ()


def test_a_retry_is_answered_with_the_same_offset() -> None:
    run = played("producer-retry-duplicate", "after")
    (copy,) = kinds(run, "duplicate")
    (acknowledged,) = [
        event
        for event in kinds(run, "acknowledged")
        if event.numbers["record"] == copy.numbers["record"]
    ]
    assert acknowledged.numbers["offset"] == copy.numbers["offset"]


def test_without_its_guard_the_best_log_does_not_win() -> None:
    first_up = played("whole-cluster-power-loss", "first-up")
    assert "best-log" not in values(first_up, "elected", "rule")


@pytest.mark.parametrize(
    ("name", "variant", "kind", "number", "value"),
    [
        ("stale-metadata", "default", "refused", "error", "NOT_LEADER_OR_FOLLOWER"),
        ("controller-failover", "default", "command-refused", "error", "STALE_CONTROLLER_EPOCH"),
        ("zombie-fetcher", "after", "fetch-refused", "error", "FENCED_LEADER_EPOCH"),
        ("fenced-rejoin", "after", "isr-refused", "error", "INELIGIBLE_REPLICA"),
        ("consumer-truncation", "after", "read-refused", "error", "LOG_TRUNCATION"),
        ("append-after-io-error", "after", "refused", "error", "KAFKA_STORAGE_ERROR"),
        ("last-replica-standing", "after", "elected", "rule", "eligible"),
        ("whole-cluster-power-loss", "after", "elected", "rule", "best-log"),
    ],
)
def test_what_saves_the_record_is_in_the_trace(
    name: str, variant: str, kind: str, number: str, value: str
) -> None:
    assert value in values(played(name, variant), kind, number)
