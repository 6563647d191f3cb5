"""Every scenario of sections A to D runs on real brokers, or has a reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.lab import Scenario, ids, load, section_of
from tests.real import (
    test_catalogue_elections,
    test_catalogue_in_sync,
    test_catalogue_later_holes_epochs,
    test_catalogue_later_holes_membership,
    test_catalogue_losses,
    test_catalogue_replication,
)
from tests.real.scenarios import NOT_REAL, NOT_REAL_VARIANTS, PLAYED

MODULES = (
    test_catalogue_replication,
    test_catalogue_in_sync,
    test_catalogue_elections,
    test_catalogue_losses,
    test_catalogue_later_holes_epochs,
    test_catalogue_later_holes_membership,
)
SECTIONS = ("a", "b", "c", "d", "d2")
RULES = ("truncation", "isr_update", "isr_expand", "isr_lag_rule", "commit_rule")
"""Switches of the lab that a broker does not have: it always uses the safe value."""


def catalogue() -> list[str]:
    return [name for name in ids() if section_of(load(name)).partition("_")[0] in SECTIONS]


def needs_another_broker(options: dict[str, str]) -> bool:
    """Whether a variant removes a guard, or uses a rule that only the lab has."""
    guards = options.get("without", "()") not in ("()", "")
    other = any(rule in options and options[rule] != SAFE[rule] for rule in RULES)
    return guards or other


SAFE = {
    "truncation": "leader-epoch",
    "isr_update": "committed",
    "isr_expand": "rechecked",
    "isr_lag_rule": "time",
    "commit_rule": "isr",
}


def test_every_scenario_is_real_or_has_a_reason() -> None:
    assert sorted([*PLAYED, *NOT_REAL]) == sorted(catalogue())


@pytest.mark.parametrize("name", sorted(PLAYED))
def test_every_variant_that_is_only_settings_is_played(name: str) -> None:
    scenario: Scenario = load(name)
    known = {one.name for one in scenario.variants}
    assert set(PLAYED[name]) <= known
    for variant in scenario.variants:
        if variant.name not in PLAYED[name]:
            reason = NOT_REAL_VARIANTS.get((name, variant.name))
            assert reason or needs_another_broker(dict(variant.options)), variant.name


@pytest.mark.parametrize("name", sorted(PLAYED))
def test_a_scenario_is_run_by_a_test_of_its_name(name: str) -> None:
    wanted = f"test_{name.replace('-', '_')}"
    assert any(hasattr(module, wanted) for module in MODULES)


def test_modules_are_all_looked_at() -> None:
    folder = Path(__file__).parent
    found = {path.stem for path in folder.glob("test_catalogue_*.py")}
    assert found == {module.__name__.rpartition(".")[2] for module in MODULES}
