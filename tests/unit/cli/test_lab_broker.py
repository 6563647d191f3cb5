"""`holdfast lab broker`: one seed, many seeds, and what it says of bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.simulation import run
from holdfast.simulation.plan import plan_of
from tests.unit.cli.lab_runner import lab, lab_json

SHORT = ("--duration", "500", "--faults", "none")


def test_one_seed_prints_what_happened() -> None:
    done = lab("broker", "5", *SHORT)
    assert done.exit_code == 0
    assert "events-0 b" in done.output
    assert "acknowledged: " in done.output


def test_one_seed_as_json_and_its_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    facts = lab_json("broker", "5", *SHORT, "--save", path)
    assert (facts["failures"], facts["trace"]) == ([], str(path))
    assert lab_json("replay", path)["stories"][0]["table"]


def test_many_seeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    facts = lab_json("broker", "--seeds", "0..1", "--limit", "1", code=2)
    assert (facts["verdict"], facts["tried"]) == ("limit", 1)
    assert facts["limit"] == "1 seeds"
    assert facts["simulated_hours"] > 100 / 3600


def test_many_seeds_say_how_much_time_they_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "plan_of", lambda seed: replace(plan_of(seed), duration_ms=36_000))
    assert "simulated: 0.0" in (done := lab("broker", "--seeds", "0..1").output)
    assert " hours in 2 seeds" in done


@pytest.mark.slow
def test_a_seed_that_fails_is_saved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "judge", lambda *_: ["lost: a record"])
    monkeypatch.setattr(run, "REST_S", 30.0)
    monkeypatch.setattr(run, "plan_of", lambda seed: replace(plan_of(seed), duration_ms=5_000))
    done = lab("broker", "--seeds", "7..7")
    assert done.exit_code == 1
    assert "FAILED lost: a record" in done.output
    assert "see it again: holdfast lab broker 7 --faults none" in done.output
    assert (tmp_path / "broker-seed-7.jsonl").exists()


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("1", "--seeds", "0..1"),
        ("--seeds", "5..1"),
        ("x",),
        ("1", "--faults", "kil"),
        ("1", "--limit", "5"),
        ("--seeds", "0..1", "--duration", "100"),
        ("--seeds", "0..1", "--limit", "soon"),
    ],
)
def test_bad_input_is_refused(words: tuple[str, ...]) -> None:
    assert lab("broker", *words).exit_code == 64
