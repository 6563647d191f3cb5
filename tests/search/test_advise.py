"""Advice: possible losses are tried, shown and counted, and a safer setting is tried as well."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.cli import main
from holdfast.cluster import Cluster
from holdfast.lab.scenarios.run import run_scenario
from holdfast.lab.scenarios.scenario import parse
from holdfast.search import HOLDS, LIMIT, VIOLATED
from holdfast.search.advise import (
    Advice,
    Asked,
    AskedError,
    Given,
    Searched,
    advise,
    asked_of,
    of_logs,
    of_producer,
    read_file,
)
from holdfast.search.advise.searches import search_all
from holdfast.search.limits import Limits

SAFE = {"min_insync_replicas": "2", "flush": "every-append"}
TWO = ("--replicas", "2", "--failures", "1")


def asked(**options: str) -> Asked:
    return asked_of([Given(source="test", replicas=2, options={**SAFE, **options})])


@cache
def answer(failures: int = 2, **options: str) -> Advice:
    return advise(asked(**options), failures=failures, seconds=600)


def searched(failures: int, **options: str) -> list[str]:
    """The faults that cause a loss according to the search."""
    found = search_all(asked(**options), failures, Limits, lambda _: None)
    return [one.faults for one in found.losses]


def faults(advice: Advice, outcome: str = "lost") -> list[str]:
    return [line.loss.faults for line in advice.lines if line.loss.outcome == outcome]


def command(*words: str) -> Result:
    return CliRunner().invoke(main, ["advise", *words])


def test_a_safe_combination_loses_nothing() -> None:
    advice = answer()
    assert advice.verdict == HOLDS
    assert advice.lines == ()
    assert advice.nearest is None
    assert {one.verdict for one in advice.searched} == {HOLDS}
    assert all(one.distinct > 1 for one in advice.searched)
    assert (advice.price.writes_survive, advice.data_survives_least) == (0, 2)
    unfinished = Searched(faults="", command="", verdict=LIMIT, distinct=1)
    assert replace(advice, searched=(unfinished,)).verdict == LIMIT


def test_acks_1_loses_with_one_fault() -> None:
    advice = answer(failures=1, acks="1")
    assert advice.verdict == VIOLATED
    assert "one process dies" in faults(advice)
    assert "one broker is disconnected for a time" in faults(advice)
    assert advice.nearest is not None
    assert advice.nearest.setting_text == "acks=all"
    assert (advice.nearest.before.round_trips, advice.nearest.after.round_trips) == (1, 2)
    assert (advice.nearest.before.copies_least, advice.nearest.after.copies_least) == (1, 2)


def test_acks_0_acknowledges_nothing() -> None:
    assert "one process dies" in searched(1, acks="0")


def test_a_minimum_of_1_loses_with_the_last_one_in_sync() -> None:
    advice = answer(failures=1, min_insync_replicas="1", flush="page-cache")
    line = next(one for one in advice.lines if one.loss.kinds == {"power": 1})
    assert line.loss.faults == "one machine loses power while another is down"
    assert ("min_insync_replicas", "2") in line.remedies
    assert ("flush", "every-append") in line.remedies
    disk = next(one for one in advice.lines if one.loss.kinds == {"disk": 1})
    assert disk.remedies == (("min_insync_replicas", "2"),)


def test_an_unclean_election_loses() -> None:
    advice = answer(failures=1, min_insync_replicas="1", unclean="on")
    line = next(one for one in advice.lines if one.loss.kinds == {"crash": 1})
    assert line.loss.outcome == "lost"
    assert ("unclean", "off") in line.remedies


@pytest.mark.slow
def test_the_page_cache_loses_when_all_machines_lose_power() -> None:
    advice = answer(flush="page-cache")
    assert faults(advice) == ["2 machines lose power"]
    assert advice.data_survives == 1
    assert advice.nearest is not None
    assert advice.nearest.setting_text == "flush.messages=1"
    assert (advice.nearest.before.flushes, advice.nearest.after.flushes) == (0, 2)
    assert searched(1, flush="page-cache") == []


def test_every_line_can_be_seen_again() -> None:
    advice = answer(failures=1, acks="1")
    [line] = [one for one in advice.lines if one.loss.kinds == {"crash": 1}]
    search, *scenarios = line.loss.evidence
    assert search.scenario_text is not None
    scenario = parse(search.scenario_text, "found.scenario")
    assert run_scenario(scenario, scenario.variants[0]).verdict.lost
    assert "--strict" in search.command
    done = CliRunner().invoke(main, [*shlex.split(scenarios[0].command)[1:], "--json"])
    assert "lost" in [one["outcome"] for one in json.loads(done.stdout)["variants"]], done.stdout


def test_a_consumer_that_commits_too_early(tmp_path: Path) -> None:
    words = (*TWO, "--min-insync", "2", "--flush", "every-append", "--json")
    done = command(*words, "--commit", "auto", "--save", str(tmp_path))
    assert done.exit_code == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == "holdfast-advise/1"
    assert [one["outcome"] for one in report["lines"]] == ["lost-at-consumer"]
    assert report["nearest"]["setting"] == "commit"
    assert list(tmp_path.iterdir()) == []


def test_without_consumer_settings_the_consumer_is_not_judged() -> None:
    assert "commit" not in asked().options
    assert any("consumer" in one for one in asked().not_looked_at)


def test_files_of_kafka() -> None:
    server = read_file(
        "server", "default.replication.factor=2\nmin.insync.replicas=2\nnode.id=1\n", "s"
    )
    topic = read_file("topic", "flush.messages=1\nretention.ms=1000\n", "t")
    producer = read_file("producer", "acks=1\nlinger.ms=5\nschema.registry.url=x\n", "p")
    read = asked_of([of_logs(server, topic, "s", all_of_it=True), of_producer(producer, "p")])
    assert read.replicas == 2
    assert read.options["min_insync_replicas"] == "2"
    assert read.options["flush"] == "every-append"
    assert read.options["acks"] == "1"
    assert read.options["idempotence"] == "off"
    named = ("node.id (s)", "retention.ms (s)", "linger.ms (p)", "schema.registry.url (p)")
    assert all(one in read.not_looked_at for one in named)
    assert read.needed == 1


def test_options_win_over_files(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("default.replication.factor=3\nmin.insync.replicas=1\n", encoding="utf-8")
    words = ("--replicas", "1", "--flush", "every-append", "--acks", "1")
    done = command("--server", str(file), *words)
    assert done.exit_code == 1, done.stderr
    assert "- one disk is lost: acknowledged and lost" in done.stdout
    assert "idempotence                  off" in done.stdout


@pytest.mark.slow
def test_a_running_cluster_is_asked(tmp_path: Path) -> None:
    with Cluster(tmp_path / "data", brokers=2) as cluster:
        config = {"min.insync.replicas": "2", "flush.messages": "1", "retention.ms": "60000"}
        cluster.create_topic("events", 1, 2, config=config)
        several = f"127.0.0.1:1,{cluster.bootstrap}"  # nothing listens at the first address
        done = command("-b", several, "--topic", "events", "--json")
        lacking = command("-b", cluster.bootstrap.split(",")[0], "--topic", "nothing")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["replicas"] == 2
    assert report["settings"]["min_insync_replicas"] == "2"
    assert report["settings"]["flush"] == "every-append"
    assert any(one.startswith("retention.ms ") for one in report["not_looked_at"])
    assert lacking.exit_code == 64
    assert "has no topic nothing" in lacking.stderr


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        ("server", "min.insync.replica=2", "did you mean min.insync.replicas"),
        ("topic", "a=1\\u12", "four hexadecimal digits"),
        ("producer", "\nack=all", "f:2: ack is not a setting of a producer"),
        ("producer", "acks=2", "must be 0, 1 or all"),
        ("consumer", "enable.auto.comit=false", "did you mean enable.auto.commit"),
    ],
)
def test_files_that_are_wrong(kind: str, text: str, complaint: str) -> None:
    with pytest.raises(AskedError) as error:
        read_file(kind, text, "f")
    assert complaint in f"{error.value} {error.value.hint}"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--acks", "1", "--idempotence", "on"), "enable.idempotence needs acks=all"),
        (("--replicas", "2", "--min-insync", "3"), "no write with acks=all is ever accepted"),
        (("--flush", "never"), "flush cannot be 'never'"),
        (("-b", "nowhere"), "go together"),
        (("-b", "nowhere", "--topic", "t"), "is not HOST:PORT"),
        (("-b", "127.0.0.1:1", "--topic", "t"), "no broker at 127.0.0.1:1"),
        (("-b", "127.0.0.1:1,nowhere", "--topic", "t"), "'nowhere' is not HOST:PORT"),
    ],
)
def test_bad_input(words: tuple[str, ...], complaint: str) -> None:
    done = command(*words)
    assert done.exit_code == (69 if complaint.startswith("no broker") else 64)
    assert complaint in done.stderr
