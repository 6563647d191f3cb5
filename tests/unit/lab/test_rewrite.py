"""Rewriting a scenario file replaces only the expected output."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.lab.scenarios.catalogue import paths
from holdfast.lab.scenarios.rewrite import rewritten
from holdfast.lab.scenarios.run import run_scenario
from holdfast.lab.scenarios.scenario import parse

WRONG = """\
# A record is kept, or lost.
#
# The header stays as it is (KIP-101).

variant hasty acks=0
variant careful acks=all

# These words stay.
cluster brokers=(A,B)

# Expected too little: nothing at all.
produce A
  m0

# Expected too much: this step is silent.
wait 10
----
thunder

# Expected the same of both, and they differ.
crash A
verdict
---- hasty
one thing
----
another

# Expected different things of both, and they agree.
isr
---- careful
store: gone
---- hasty
store: somewhere
"""


def again(text: str) -> str:
    return rewritten(parse(text, "s"))


def test_a_rewritten_file_is_as_expected() -> None:
    scenario = parse(again(WRONG), "s")
    assert all(run_scenario(scenario, variant).as_expected for variant in scenario.variants)


def test_the_wrong_file_was_not_as_expected() -> None:
    scenario = parse(WRONG, "s")
    found = [run_scenario(scenario, variant).mismatches for variant in scenario.variants]
    assert [len(one) for one in found] == [4, 4]


def test_rewriting_twice_changes_nothing() -> None:
    once = again(WRONG)
    assert once != WRONG
    assert again(once) == once


def test_everything_but_the_blocks_is_kept() -> None:
    def kept(text: str) -> list[str]:
        scenario = parse(text, "s")
        lines = [one.text for step in scenario.steps for one in step.commands]
        return [*(line for line in text.splitlines() if line.startswith("#")), *lines]

    assert kept(again(WRONG)) == kept(WRONG)
    assert "variant hasty acks=0\nvariant careful acks=all\n" in again(WRONG)
    assert "produce A\n  m0\n" in again(WRONG)


def test_variants_that_agree_share_one_bare_block() -> None:
    last = again(WRONG).rstrip("\n").split("\n\n")[-1].splitlines()
    assert last[1:3] == ["isr", "----"]
    assert len([line for line in last if line.startswith("----")]) == 1


def test_variants_that_differ_get_a_block_each() -> None:
    step = next(one for one in again(WRONG).split("\n\n") if "verdict" in one.splitlines())
    assert [line for line in step.splitlines() if line.startswith("----")] == [
        "---- hasty",
        "---- careful",
    ]


def test_a_silent_step_gets_no_block() -> None:
    assert "wait 10\n\n" in again(WRONG)


def test_two_of_three_variants_share_the_bare_block() -> None:
    text = (
        "# C.\n\nvariant a acks=all\nvariant b acks=1\nvariant c acks=all\n\n"
        "cluster brokers=(A,B)\n\nproduce A\n  m0\n\nverdict\n"
    )
    produce = parse(again(text), "s").steps[1]
    assert list(produce.expected) == ["b", ""]
    assert produce.expects("a") == produce.expects("c") == ("A appends [0,1) epoch=0",)
    assert produce.expects("b")[-1] == "A acknowledges offset=0"


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_a_rewritten_scenario_file_is_unchanged(path: Path) -> None:
    scenario = parse(path.read_text(encoding="utf-8"), str(path))
    once = rewritten(scenario)
    renewed = parse(once, str(path))
    assert [one.text for step in renewed.steps for one in step.commands] == [
        one.text for step in scenario.steps for one in step.commands
    ]
    assert [one.narration for one in renewed.steps] == [one.narration for one in scenario.steps]
    assert rewritten(renewed) == once
