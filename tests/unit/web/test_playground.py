"""Cases of the playground, as its worker answers them, without a browser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from holdfast.lab import ids, load, parse, run_scenario
from holdfast.web.playground import answer
from holdfast.web.playground.site import write_code

LOSS = {"scenario": "loss-restart-truncation", "variant": "before"}


def ask(question: str, case: dict[str, Any], **more: Any) -> dict[str, Any]:
    answered = json.loads(answer(json.dumps({"ask": question, "case": case, **more})))
    assert isinstance(answered, dict)
    return answered


def test_everything_imported_is_pure_python_from_the_standard_library() -> None:
    code = "import sys; had = set(sys.modules); import holdfast.web.playground; "
    code += "print(*{name.partition('.')[0] for name in set(sys.modules) - had})"
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    foreign = set(printed.split()) - set(sys.stdlib_module_names)
    assert foreign == {"holdfast"}


def test_the_zip_alone_plays_a_scenario(tmp_path: Path) -> None:
    write_code(tmp_path / "code.zip")
    with ZipFile(tmp_path / "code.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    code = "import sys; sys.path.insert(0, sys.argv[1]); "
    code += "from holdfast.web.playground import answer; print(answer(sys.argv[2]))"
    question = json.dumps({"ask": "play", "case": LOSS})
    # -S: nothing that is installed can be imported, this checkout included.
    command = [sys.executable, "-S", "-c", code, str(tmp_path / "unpacked"), question]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert json.loads(printed.stdout)["verdict"]["lost"] == ["m2"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ids())
def test_a_scenario_kept_to_its_end_has_the_same_verdict(name: str) -> None:
    for variant in load(name).variants:
        case = {"scenario": name, "variant": variant.name}
        whole = ask("play", case)
        last = max(map(int, whole["controls"]))
        assert last == max(frame["step"] for frame in whole["data"]["frames"])
        kept = ask("play", {**case, "kept": last})
        assert (kept["verdict"], kept["error"]) == (whole["verdict"], "")


def test_every_button_can_be_pressed() -> None:
    own = ["produce b1 acks=all\n  m0", "crash b3"]
    case = {"scenario": "free-play", "kept": 0, "commands": own}
    controls = ask("play", case)["controls"]["2"]
    of_nodes = [one for broker in controls["brokers"] for one in broker["buttons"]]
    buttons = [*of_nodes, *controls["controller"]["buttons"], *controls["cluster"]]
    commands = [one["command"] for one in buttons]
    for message in controls["messages"]:
        commands += [message["deliver"], message["drop"], message["duplicate"]]
    for command in commands:
        then = ask("play", case, step=2, command=command)
        assert not then.get("error"), command
        assert then["case"]["commands"] == [*own, command]


def test_two_messages_on_one_link_are_delivered_one_by_one() -> None:
    case = {"scenario": "free-play", "kept": 0, "commands": ["duplicate b2->b1"]}
    messages = ask("play", case)["controls"]["1"]["messages"]
    on_link = [one["deliver"] for one in messages if one["link"] == "b2 → b1"]
    assert on_link == ["deliver b2->b1 place=1", "deliver b2->b1 place=2"]


def test_a_command_replaces_the_later_ones() -> None:
    case = {**LOSS, "kept": 1, "commands": ["restart B", "settle"]}
    shorter = ask("play", case, step=2, command="crash A")["case"]
    assert (shorter["kept"], shorter["commands"]) == (1, ["restart B", "crash A"])
    other = ask("play", case, step=0, command="crash A")["case"]
    assert (other["kept"], other["commands"]) == (0, ["crash A"])


def test_a_command_that_prints_leaves_the_case_as_it_is() -> None:
    case = {**LOSS, "kept": 1, "commands": ["restart B"]}
    assert ask("play", case, step=2, command="isr") == {
        "output": ["store: leader=A epoch=0 isr=(A,B)"]
    }


def test_a_command_that_cannot_be_carried_out_says_why() -> None:
    case = {"scenario": "free-play", "kept": 0}
    assert ask("play", case, step=0, command="restart b1") == {
        "error": "b1 is running already (usage: restart NODE …)"
    }


def test_rules_under_which_the_scenario_cannot_go_on_show_how_far_it_came() -> None:
    played = ask("play", {"scenario": "maximal-isr", "overrides": {"min_insync_replicas": "3"}})
    assert played["error"].startswith("nothing is on its way for r1->r2")
    assert played["verdict"] is None
    assert played["controls"]["0"]["messages"] is not None
    assert len(played["data"]["frames"]) > 50


def test_a_saved_case_is_a_scenario_that_runs_as_expected() -> None:
    without = {"without": "(eligible-leaders,fence-fetch)"}
    case = {**LOSS, "kept": 1, "commands": ["restart B", "settle"], "overrides": without}
    saved = ask("file", case)
    scenario = parse(saved["text"], saved["name"])
    (variant,) = scenario.variants
    run = run_scenario(scenario, variant)
    assert run.as_expected
    assert run.verdict.outcome == ask("play", case)["verdict"]["outcome"]


@pytest.mark.parametrize("case", [{}, {"scenario": "free-play", "kept": "x"}, {"scenario": "nope"}])
def test_a_question_that_is_no_case_is_refused(case: dict[str, Any]) -> None:
    assert "error" in ask("play", case)
