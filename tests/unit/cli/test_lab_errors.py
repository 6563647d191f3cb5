"""`holdfast lab` and bad input: one line that says what is wrong and what to try, exit code 64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.lab import fold, load, run_scenario
from holdfast.lab.judge.explain import explain
from holdfast.model import MalformedTraceError, parse_trace
from tests.unit.cli.lab_runner import lab

SCENARIO = "loss-restart-truncation"


def lines_of_a_trace() -> list[str]:
    run = run_scenario(load(SCENARIO), load(SCENARIO).variant("before"))
    return [event.to_json() for event in run.events]


TRACE = lines_of_a_trace()
APPENDED = next(place for place, line in enumerate(TRACE) if '"k":"appended"' in line)


def refused(done: Result) -> str:
    """The one line on stderr, once it is clear that nothing else was said."""
    assert done.exit_code == 64, (done.stdout, done.stderr)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("holdfast: ")
    assert line.endswith(")"), f"no suggestion: {line}"
    return line


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        (["run", "loss-ack-1"], "no scenario is called 'loss-ack-1'", "did you mean 'loss-acks-1'"),
        (["run", "qqqq"], "no scenario is called 'qqqq'", "holdfast lab list"),
        (["step", "loss-ack-1"], "no scenario is called 'loss-ack-1'", "'loss-acks-1'"),
        (["explain", "loss-ack-1", "--offset", "0"], "no scenario is called", "'loss-acks-1'"),
        (["run"], "name scenarios, or give --all", "holdfast lab list"),
        (["run", SCENARIO, "--all"], "name scenarios, or give --all", "holdfast lab list"),
        (
            ["run", SCENARIO, "--variant", "befor"],
            "has no variant 'befor'",
            "did you mean 'before'?",
        ),
        (["run", SCENARIO, "--variant", "x"], "has no variant 'x'", "one of before, after"),
        (["run", SCENARIO, "--without", "fence-fech"], "unknown guard", "'fence-fetch'?"),
        (["run", SCENARIO, "--set", "truncaton=x"], "unknown setting", "'truncation'?"),
        (["run", SCENARIO, "--set", "truncation=x"], "truncation cannot be 'x'", "leader-epoch"),
        (["run", SCENARIO, "--set", "truncation"], "is not KEY=VALUE", "--set acks=all"),
        (["run", SCENARIO, "--set", "acks="], "is not KEY=VALUE", "--set acks=all"),
        (["run", SCENARIO, "--set", "min.insync.replicas=-1"], "cannot be '-1'", "a number"),
        (["step", SCENARIO, "--without", "nothing"], "unknown guard 'nothing'", "known: "),
        (["replay", "1", "--without", "fence-fech"], "unknown guard", "'fence-fetch'?"),
        (["replay", "1", "--set", "flush=never"], "flush cannot be 'never'", "page-cache"),
        (["replay", "9" * 5000], "a seed has at most", "try"),
        (["replay", "nowhere.jsonl"], "cannot read the trace nowhere.jsonl", "--trace FILE"),
        (["replay", SCENARIO], f"cannot read the trace {SCENARIO}", "--trace FILE"),
        (["explain", "nowhere.trace", "--offset", "1"], "cannot read the trace", "--trace FILE"),
        (["explain", SCENARIO], "give --offset N or --record LABEL", "try"),
        (["explain", SCENARIO, "--offset", "1", "--record", "m"], "give --offset N or", "try"),
        (["explain", SCENARIO, "--record", "m99"], "never had the record 'm99'", "lab step"),
        (["explain", SCENARIO, "--offset", "99"], "never had a record at offset 99", "lab step"),
        (["explain", SCENARIO, "--offset", "first"], "'first' is not a valid integer", "--help"),
        (["run", "nowhere.scenario"], "cannot read nowhere.scenario", "holdfast lab list"),
        (["run", SCENARIO, "--nonsense"], "No such option '--nonsense'", "--help"),
        (["ran", SCENARIO], "No such command 'ran'", "--help"),
        (["step"], "Missing argument", "--help"),
    ],
)
def test_bad_input_is_one_line_and_64(arguments: list[str], said: str, hint: str) -> None:
    line = refused(lab(*arguments))
    assert said in line
    assert hint in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: the file is empty (begin with"),
        ("cluster brokers=(A)\n", ":1: the file must open with a '#' header (say what"),
        ("# C.\n\ncluster brokers=(A)\nsetle\n\nverdict\n", ":4: unknown command 'setle' (did you"),
        ("# C.\n\ncluster brokers=(A) acks=7\n\nverdict\n", ":3: acks cannot be '7' (acks=0 | 1"),
        ("# C.\n\nvariant a\n\nwait 1\n---- b\n", ":6: no variant is called 'b' (known: a)"),
        ("# C.\n\ncluster brokers=(A)\n", ":3: the scenario has no verdict (end with 'verdict')"),
    ],
)
@pytest.mark.parametrize("command", ["run", "step", "explain"])
def test_a_malformed_scenario_names_its_file_and_line(
    tmp_path: Path, command: str, text: str, said: str
) -> None:
    path = tmp_path / "bad.scenario"
    path.write_text(text, encoding="utf-8")
    more = ["--offset", "0"] if command == "explain" else []
    assert f"{path}{said}" in refused(lab(command, path, *more))


def test_a_scenario_in_odd_bytes_or_none_at_all(tmp_path: Path) -> None:
    path = tmp_path / "bad.scenario"
    path.write_bytes(b"# C.\n\n\xff\xfe\n")
    assert f"{path}:3: not UTF-8 text (save it as UTF-8)" in refused(lab("run", path))
    folder = tmp_path / "folder.scenario"
    folder.mkdir()
    assert "Is a directory" in refused(lab("run", folder))


def changed(place: int, **changes: Any) -> list[str]:
    fields = {**json.loads(TRACE[place]), **changes}
    kept = {key: value for key, value in fields.items() if value is not ...}
    return [*TRACE[:place], json.dumps(kept), *TRACE[place + 1 :]]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "line 1: the trace is empty"),
        (["", "  "], "line 1: the trace is empty"),
        ([*TRACE[:2], "{", *TRACE[2:]], "line 3: not JSON"),
        ([TRACE[0], "", "[1]"], "line 3: not a JSON object"),
        (changed(1, why=...), "line 2: the key 'why' is missing"),
        (changed(1, k="exploded"), "line 2: unknown kind 'exploded'"),
        (changed(1, k=7), "line 2: unknown kind 7"),
        (changed(1, t="noon"), "line 2: t is not a whole number"),
        (changed(1, b="A"), "line 2: b is not a whole number"),
        (changed(1, b=None, k="appended"), "line 2: appended lacks"),
        (changed(APPENDED, b=None), f"line {APPENDED + 1}: appended needs a broker (b)"),
        (changed(0, names={"x": "A"}), "line 1: names does not map broker ids"),
        (changed(0, isr=["A"]), "line 1: isr is not a list of whole numbers"),
        (changed(0, leader={}), "line 1: leader is not a whole number"),
        (changed(0, rules=[]), "line 1: rules is not a JSON object"),
        ([line.replace('"k":"crashed","why"', '"k":"said","why"') for line in TRACE], "said lacks"),
    ],
)
@pytest.mark.parametrize("command", ["replay", "explain"])
def test_a_malformed_trace_names_its_file_and_line(
    tmp_path: Path, command: str, lines: list[str], said: str
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    more = ["--offset", "2"] if command == "explain" else ["--all"]
    line = refused(lab(command, path, *more))
    assert f"{path}: " in line
    assert said in line


def test_a_trace_in_odd_bytes_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(TRACE[0].encode() + b"\n\xff\n")
    assert f"{path}: line 2: not UTF-8 text" in refused(lab("replay", path))
    assert "Is a directory" in refused(lab("replay", tmp_path))


def test_rules_cannot_be_changed_in_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(TRACE), encoding="utf-8")
    assert lab("replay", path, "--json").exit_code == 0
    assert "a trace is shown as it is" in refused(lab("replay", path, "--set", "acks=1"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["step", SCENARIO, "--html", "{file}/page.html"],
        ["step", SCENARIO, "--svg", "{file}/pictures"],
        ["run", SCENARIO, "--trace", "{file}/run.jsonl"],
        ["replay", "1", "--trace", "{file}/run.jsonl"],
    ],
)
def test_a_place_that_cannot_be_written_to(tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    done = lab(*(one.format(file=file) for one in arguments))
    assert done.exit_code == 64
    assert f"cannot write {file}" in done.stderr.splitlines()[-1]


ANYTHING = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just(1.5)
VALUES = ANYTHING | st.lists(ANYTHING, max_size=2) | st.dictionaries(st.text(max_size=2), ANYTHING)


@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, len(TRACE) - 1), data=st.data())
def test_a_trace_with_any_value_changed_is_shown_or_refused(
    place: int, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(list(json.loads(TRACE[place]))))
    lines = changed(place, **{key: data.draw(VALUES)})
    try:
        events = list(parse_trace(lines))
    except MalformedTraceError as error:
        assert str(error).startswith(f"line {place + 1}: ")
    else:
        fold(events)
        explain(events, 2).to_text()
