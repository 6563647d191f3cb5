"""`holdfast lab`: what each command prints and writes, and how it ends."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from holdfast.core import guard_names
from holdfast.lab import OPTIONS, fold, ids, load, run_scenario
from holdfast.lab.scenarios.commands import HANDLERS
from holdfast.model import parse_trace
from tests.unit.cli.lab_runner import lab, lab_json

SCENARIO = "loss-restart-truncation"
VARIANTS = [one.name for one in load(SCENARIO).variants]
BROKEN_SEED = ("replay", "2", "--set", "truncation=high-watermark")
OTHERWISE = """\
# A scenario whose run differs from its expectations.

cluster brokers=(A,B)
produce A
  m0
settle

verdict
----
outcome: lost
"""


@pytest.fixture
def otherwise(tmp_path: Path) -> Path:
    path = tmp_path / "otherwise.scenario"
    path.write_text(OTHERWISE, encoding="utf-8")
    return path


class Page(HTMLParser):
    """Checks that every element that must be closed is closed, in order."""

    EMPTY = ("meta", "link", "br", "hr", "img", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.EMPTY:
            self.open.append(tag)
        self.links.extend(value or "" for name, value in attrs if name in ("src", "href"))

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag


def check_page(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert text.lower().startswith("<!doctype html>")
    assert [one for one in page.links if not one.startswith(("#", "data:"))] == []
    return text


def test_list_names_every_scenario_and_its_claim() -> None:
    done = lab("list")
    assert done.exit_code == 0
    for name in ids():
        assert f"  {name} " in done.stdout
        assert load(name).title in done.stdout


def test_list_as_json_has_stable_keys() -> None:
    data = lab_json("list")
    assert list(data) == ["schema", "scenarios"]
    assert data["schema"] == "holdfast-lab-list/1"
    assert [one["id"] for one in data["scenarios"]] == ids()
    for one in data["scenarios"]:
        assert list(one) == ["id", "section", "title", "variants"]
    listed = next(one for one in data["scenarios"] if one["id"] == SCENARIO)
    assert (listed["section"], listed["variants"]) == ("d_losses", VARIANTS)


def test_commands_and_guards_are_listed_for_authors_of_scenarios() -> None:
    commands = lab_json("commands")
    assert list(commands) == ["schema", "commands", "settings"]
    assert commands["schema"] == "holdfast-lab-commands/1"
    assert len(commands["commands"]) == len(HANDLERS)
    assert len(commands["settings"]) == len(OPTIONS)
    guards = lab_json("guards")
    assert list(guards) == ["schema", "guards"]
    assert guards["schema"] == "holdfast-lab-guards/1"
    text = lab("guards").stdout
    for name in guard_names():
        assert name in text


def test_run_says_how_each_variant_ends() -> None:
    done = lab("run", SCENARIO)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"{SCENARIO}: {load(SCENARIO).title}"
    assert any(line.startswith("  ✗ before") and "lost m2 (invalid)" in line for line in lines)
    assert any(line.startswith("  ✓ after") and "kept (valid)" in line for line in lines)


def test_run_with_one_variant_runs_only_that() -> None:
    assert lab_json("run", SCENARIO, "--variant", "after")["variant"] == "after"
    assert len(lab_json("run", SCENARIO, "--variant", "after")["variants"]) == 1


FACTS = [
    *("variant", "options", "as_expected", "verdict", "outcome", "reason", "lost"),
    *("exposed_lost", "refused_kept", "diverged", "duplicated", "reordered", "consumer_lost"),
    *("producer_lost", "processed_twice", "hidden", "skipped", "violations", "mismatches", "table"),
]


def test_run_as_json_has_stable_keys() -> None:
    data = lab_json("run", SCENARIO)
    assert list(data) == ["schema", "id", "title", *FACTS, "variants"]
    assert (data["schema"], data["id"]) == ("holdfast-lab-run/1", SCENARIO)
    assert [one["variant"] for one in data["variants"]] == VARIANTS
    for one in data["variants"]:
        assert list(one) == FACTS
        assert one["as_expected"] is True
    assert (data["variant"], data["verdict"]) == ("before", "invalid")
    assert (data["outcome"], data["lost"]) == ("lost", ["m2"])


def test_the_table_has_every_replica_after_every_step() -> None:
    table = lab_json("run", SCENARIO)["table"]
    for row in table:
        assert list(row) == ["step", "text", "event", "t", "replicas"]
        assert list(row["replicas"]) == ["A", "B"]
        for replica in row["replicas"].values():
            keys = ["leo", "hw", "flushed", "epoch", "in_isr", "role", "remote"]
            assert list(replica) == keys
    assert [row["step"] for row in table] == sorted({row["step"] for row in table})


def test_several_scenarios_as_json_are_a_list_of_runs() -> None:
    data = lab_json("run", "loss-acks-0", "loss-acks-1")
    assert list(data) == ["schema", "runs"]
    assert data["schema"] == "holdfast-lab-runs/1"
    assert [one["id"] for one in data["runs"]] == ["loss-acks-0", "loss-acks-1"]


def test_every_scenario_meets_its_expectations() -> None:
    done = lab("run", "--all")
    assert done.exit_code == 0, done.stdout
    account = [line.partition(":")[0] for line in done.stdout.splitlines() if line[0] != " "]
    assert account == ids()


def test_a_scenario_that_differs_exits_1_and_says_where(otherwise: Path) -> None:
    done = lab("run", otherwise)
    assert done.exit_code == 1
    assert "NOT AS THE SCENARIO EXPECTS" in done.stdout
    assert f"{otherwise}:9\n" in done.stdout
    assert "expected  outcome: lost" in done.stdout
    assert "happened  outcome: kept" in done.stdout
    assert done.stdout.endswith(f"holdfast lab step {otherwise}\n")
    data = lab_json("run", otherwise, code=1)
    assert data["as_expected"] is False
    *_, last = data["mismatches"]
    assert list(last) == ["line", "expected", "actual"]
    assert (last["line"], last["expected"]) == (9, ["outcome: lost"])


def test_under_changed_rules_nothing_is_expected(otherwise: Path) -> None:
    assert lab("run", otherwise, "--set", "acks=1").exit_code == 0
    data = lab_json("run", SCENARIO, "--variant", "after", "--set", "truncation=high-watermark")
    assert data["as_expected"] is None
    assert data["lost"] == ["m2"]
    assert lab_json("run", "maximal-isr", "--without", "maximal-isr")["as_expected"] is None


def test_a_trace_that_was_written_can_be_replayed_and_explained(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    done = lab("run", SCENARIO, "--variant", "before", "--trace", path)
    events = run_scenario(load(SCENARIO), load(SCENARIO).variant("before")).events
    assert f"({len(events)} events)" in done.stderr
    with path.open(encoding="utf-8") as lines:
        assert fold(parse_trace(lines)) == fold(events)
    account = lab("explain", SCENARIO, "--variant", "before", "--offset", "2").stdout
    again = lab("explain", path, "--offset", "2").stdout
    assert again.splitlines()[0] == account.splitlines()[0]
    replayed = lab_json("replay", path)
    stepped = lab_json("step", SCENARIO, "--variant", "before")
    assert replayed["stories"][0]["table"] == stepped["stories"][0]["table"]


def test_step_prints_every_frame_into_a_pipe() -> None:
    done = lab("step", SCENARIO, "--all")
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout
    for variant in VARIANTS:
        assert f"=== variant {variant} ===" in done.stdout
        frames = fold(run_scenario(load(SCENARIO), load(SCENARIO).variant(variant)).events)
        assert f"{len(frames)}/{len(frames)}" in done.stdout


def test_step_as_json_has_stable_keys() -> None:
    data = lab_json("step", SCENARIO)
    assert list(data) == ["schema", "title", "stories"]
    assert data["schema"] == "holdfast-lab-step/1"
    assert [one["variant"] for one in data["stories"]] == VARIANTS
    assert all(list(one) == ["variant", "table"] for one in data["stories"])
    assert data["stories"][0]["table"] == lab_json("run", SCENARIO)["table"]


@pytest.mark.parametrize("variant", [[], ["--variant", "before"]], ids=["tabs", "one"])
def test_step_writes_one_page_that_needs_nothing_else(tmp_path: Path, variant: list[str]) -> None:
    path = tmp_path / "new" / "page.html"
    done = lab("step", SCENARIO, *variant, "--html", path)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"page: {path}\n"
    text = check_page(path)
    assert load(SCENARIO).title in text
    assert ("after" in text) or variant


def test_step_writes_a_picture_a_frame(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    done = lab("step", SCENARIO, "--variant", "after", "--svg", folder)
    frames = fold(run_scenario(load(SCENARIO), load(SCENARIO).variant("after")).events)
    pictures = sorted(folder.iterdir())
    assert [one.name for one in pictures] == [f"{place:03d}.svg" for place in range(len(frames))]
    assert f"pictures: {len(frames)} in" in done.stderr
    for path in pictures:
        assert ET.fromstring(path.read_text(encoding="utf-8")).tag.endswith("}svg")


def test_pictures_of_several_variants_are_kept_apart(tmp_path: Path) -> None:
    lab("step", "loss-acks-0", "--svg", tmp_path)
    names = {one.name.rpartition("-")[0] for one in tmp_path.iterdir()}
    assert names == {one.name for one in load("loss-acks-0").variants}


def test_explain_says_when_it_was_acknowledged_and_what_removed_it() -> None:
    done = lab("explain", SCENARIO, "--offset", "2")
    assert done.exit_code == 0
    assert "m2" in done.stdout.splitlines()[0]
    assert "truncation=leader-epoch" in done.stdout
    assert lab("explain", SCENARIO, "--record", "m2").exit_code == 0


def test_explain_under_changed_rules_names_what_would_undo_the_change() -> None:
    arguments = ("--variant", "after", "--set", "truncation=high-watermark", "--offset", "2")
    guard, switch = lab_json("explain", SCENARIO, *arguments)["remedies"]
    assert guard.startswith("the guard eligible-leaders: ")
    assert switch == "truncation=leader-epoch"


def test_explain_as_json_has_stable_keys() -> None:
    data = lab_json("explain", SCENARIO, "--offset", "2")
    assert list(data) == ["schema", "asked", "records", "remedies", "sentence"]
    assert data["schema"] == "holdfast-explain/1"
    assert data["records"][0]["outcome"] == "lost"


def test_replay_of_a_seed_is_the_same_run_again(tmp_path: Path) -> None:
    path = tmp_path / "seed.jsonl"
    data = lab_json("replay", "3", "--trace", path)
    keys = ["schema", "seed", "faults", "events", "trace_hash", "acknowledged", "verdict"]
    assert list(data) == [*keys, "outcome", "reason", "lost", "failures"]
    assert (data["schema"], data["seed"], data["failures"]) == ("holdfast-lab-seed/1", 3, [])
    assert len(path.read_text(encoding="utf-8").splitlines()) == data["events"]
    assert lab_json("replay", "3") == data
    assert lab("replay", path, "--json").exit_code == 0


def test_replay_prints_the_seed_first_and_on_failure_the_command_last() -> None:
    done = lab("replay", "3")
    assert done.exit_code == 0
    assert done.stdout.startswith("seed 3: ")
    assert "FAILED" not in done.stdout
    done = lab(*BROKEN_SEED)
    assert done.exit_code == 1
    assert "FAILED" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last == "see it again: holdfast lab replay 2 --set truncation=high-watermark"


def test_the_command_of_a_failed_replay_can_be_typed_into_a_shell() -> None:
    done = lab("replay", "0", "--without", "out-of-range-diverges")
    assert done.exit_code == 1
    last = done.stdout.splitlines()[-1]
    assert last.endswith("--set 'without=(out-of-range-diverges)'")


@pytest.mark.slow
def test_a_page_of_a_failed_seed_is_written_and_the_failure_still_reported(tmp_path: Path) -> None:
    page = tmp_path / "seed.html"
    assert lab(*BROKEN_SEED, "--html", page).exit_code == 1
    check_page(page)


@pytest.mark.slow
def test_the_tour_writes_its_pages(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "lab", "tour", "--no-pause", "--pages", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "NOT AS EXPECTED" not in done.stdout
    pages = sorted(tmp_path.iterdir())
    assert len(pages) >= 3
    for page in pages:
        check_page(page)
        assert page.name in done.stdout
