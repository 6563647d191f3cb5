"""What the console expects of a fault, and the scenario file that it saves."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cluster.errors import ClusterError
from holdfast.lab import parse, run_scenario
from holdfast.web.console.actions import Action
from holdfast.web.console.answers.forecast import Forecast, forecast
from holdfast.web.console.answers.scenario import scenario_text
from holdfast.web.console.answers.why import why_offline, why_out
from holdfast.web.console.faults import request_of
from holdfast.web.console.reading.observation import (
    BrokerFacts,
    Observation,
    PartitionFacts,
    TopicFacts,
)


def cluster(
    isr: tuple[int, ...] = (1, 2, 3), *, leader: int = 1, unclean: bool = False
) -> Observation:
    """Three brokers and one partition of 100 committed records."""
    seen = Observation()
    for broker in (1, 2, 3):
        seen.brokers[broker] = BrokerFacts(broker, f"127.0.0.1:{broker}")
    partition = PartitionFacts("t", 0, leader, 4, (1, 2, 3), isr, ())
    partition.end = 100
    seen.partitions["t-0"] = partition
    seen.topics["t"] = TopicFacts(min_insync=2, unclean=unclean)
    for broker in (1, 2, 3):
        copy = partition.copy(broker)
        copy.log_end = 100 if broker in isr else 60
        copy.flushed = 40
    return seen


def fate(found: Forecast) -> Any:
    [one] = found.fates
    return one


def test_the_next_member_of_the_isr_leads_after_a_kill() -> None:
    found = forecast(cluster(), "kill", {"brokers": [1]})
    assert (fate(found).leader, fate(found).isr, fate(found).lost) == (2, (2, 3), 0)
    assert found.risk == "none"
    assert "Another leader: t-0 → b2." in found.lines


def test_the_last_member_leaves_the_partition_offline_and_loses_what_was_not_flushed() -> None:
    killed = forecast(cluster((1,)), "kill", {"brokers": [1]})
    assert (fate(killed).leader, fate(killed).lost, killed.risk) == (-1, 0, "availability")
    without_power = forecast(cluster((1,)), "power-loss", {"brokers": [1]})
    assert (fate(without_power).lost, without_power.risk) == (60, "loss")
    assert "Can be lost: 60 committed records of t-0." in without_power.lines


def test_an_unclean_election_loses_what_the_new_leader_lacks() -> None:
    found = forecast(cluster((1,), unclean=True), "kill", {"brokers": [1]})
    assert (fate(found).leader, fate(found).rule, fate(found).lost) == (2, "unclean", 40)
    assert found.risk == "loss"


def test_a_controlled_shutdown_of_the_last_member_keeps_the_committed_records() -> None:
    found = forecast(cluster(), "stop", {"brokers": [3]})
    assert (fate(found).leader, fate(found).isr) == (1, (1, 2))


def test_a_follower_below_min_insync_is_named() -> None:
    found = forecast(cluster((1, 2)), "kill", {"brokers": [2]})
    assert found.risk == "availability"
    assert any("acks=all is refused: t-0" in line for line in found.lines)


def test_why_offline_names_the_dead_and_who_may_not_lead() -> None:
    seen = cluster((1,), leader=-1)
    seen.brokers[1].state = "killed"
    answer = why_offline(seen, seen.partitions["t-0"], [])
    assert "b1 was killed" in answer.reason
    assert "b2 and b3 could lead" in answer.reason
    assert answer.remedies[0] == "restart b1"


def test_why_out_gives_the_first_reason_that_holds() -> None:
    seen = cluster((1, 2))
    assert "40 records behind" in why_out(seen, seen.partitions["t-0"], 3, []).reason
    seen.brokers[3].faults = ("cut to 1",)
    assert "faults on its links: cut to 1" in why_out(seen, seen.partitions["t-0"], 3, []).reason
    seen.brokers[3].state = "paused"
    assert why_out(seen, seen.partitions["t-0"], 3, []).remedies == ["resume b3"]


def test_only_faults_of_the_table_and_their_fields_can_be_asked_for() -> None:
    assert request_of("kill", {"brokers": [1]})[1] == {"brokers": [1]}
    for call, fields in (
        ("produce", {"topic": "t"}),
        ("delete-topic", {"topic": "t"}),
        ("kill", {"brokers": [1], "topic": "t"}),
        ("kill", ["brokers"]),
        (None, {}),
        (["kill"], {}),
    ):
        with pytest.raises(ClusterError):
            request_of(call, fields)


STEPS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("kill", {"brokers": [1]}, 2),
    ("restart", {"brokers": [1]}, 2),
    ("isolate", {"brokers": [3]}, 2),
    ("heal", {}, 2),
    ("power-loss", {"brokers": [2]}, 3),
    ("restart", {"brokers": [2]}, 3),
    ("delay", {"brokers": [1], "seconds": 0.5}, 3),
    ("pause", {"brokers": [1]}, 3),
    ("resume", {"brokers": [1]}, 3),
    ("partition", {"groups": [[1], [2, 3]]}, 3),
    ("heal", {}, 3),
    ("stop", {"brokers": [3]}, 2),
    ("expire-session", {"brokers": [2]}, 1),
    ("kill", {"brokers": [3]}, 1),  # started again by 'holdfast fault restart', not by the page
    ("restart", {"brokers": [3]}, 1),
    ("disk-full", {"brokers": [3]}, 1),
)


def test_what_was_done_becomes_a_scenario_that_the_lab_runs() -> None:
    seen = cluster()
    done = [
        Action(
            number,
            call,
            dict(fields),
            0.0,
            seen,
            Forecast(()),
            running=tuple(fields["brokers"]) if call == "kill" else (),
            state="done",
            leaders={"t-0": leader},
        )
        for number, (call, fields, leader) in enumerate(STEPS)
    ]
    text = scenario_text(seen, seen.partitions["t-0"], done)
    scenario = parse(text, "t.scenario")
    run = run_scenario(scenario, scenario.variants[0])
    assert not run.mismatches
    assert run.verdict.outcome == "kept"
    assert "# holdfast fault kill 1." in text
    assert "the lab has no counterpart" in text
    assert text.count("# b3 was started again, not from the console.") == 1
    assert "m1@1" in text, "a record was acknowledged in the leader epoch after the kill"
