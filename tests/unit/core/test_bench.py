"""The micro-benchmark runs. Its speed is not checked here."""

from __future__ import annotations

import json

import pytest

from bench.core_cycle import SCHEMA, main

TINY = ("--cycles", "3", "--rounds", "2")


def test_it_prints_a_line_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(TINY) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["leader", "leader, idempotent", "cycle"]


def test_its_json_has_stable_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TINY, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["schema"] == SCHEMA
    for name in ("leader_us", "leader_idempotent_us", "cycle_us"):
        cost = figures[name]
        assert 0 <= cost["best"] <= cost["median"] <= cost["worst"]
