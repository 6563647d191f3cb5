"""Finds the scenario files that come with Holdfast."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from holdfast.lab.scenarios.scenario import Scenario, ScenarioError, parse, suggestion

SUFFIX = ".scenario"
SECTIONS = {
    "replication": "a",
    "in_sync": "b",
    "elections": "c",
    "losses": "d",
    "later_holes": "d2",
    "clients": "e",
    "guards": "g",
    "found_by_seeds": "h",
    "found_by_search": "i",
}
"""The folders in the published order of the catalogue, with the letter of each section."""


class UnknownScenarioError(LookupError):
    """No scenario has this id; `hint` names the nearest one."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"no scenario is called {name!r}")
        self.hint = hint


def folder() -> Path:
    """The folder with the scenario files that come with Holdfast."""
    return Path(str(resources.files("holdfast.lab"))) / "scenarios"


def ids() -> list[str]:
    """Every scenario's id, in the order of the catalogue's sections."""
    return [path.stem.replace("_", "-") for path in paths()]


def paths() -> list[Path]:
    """Every scenario file; folders are sections."""
    return sorted(folder().rglob(f"*{SUFFIX}"), key=_place)


def _place(path: Path) -> tuple[int, str]:
    return list(SECTIONS).index(path.parent.name), path.stem


def section_of(scenario: Scenario) -> str:
    """The section of the catalogue that a scenario belongs to, for people."""
    folder = Path(scenario.path).parent.name
    return f"{SECTIONS[folder]}_{folder}" if folder in SECTIONS else folder


def find(name: str) -> Path:
    """A scenario's file by its id, or the path of a file itself."""
    if name.endswith(SUFFIX):
        return Path(name)
    for path in paths():
        if path.stem.replace("_", "-") == name.replace("_", "-"):
            return path
    raise UnknownScenarioError(name, suggestion(name, ids()))


def load(name: str) -> Scenario:
    """A parsed scenario by its id or file name. OSError if the file cannot be read."""
    path = find(name)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ScenarioError("not UTF-8 text", str(path), line, "save it as UTF-8") from None
    return parse(text, str(path))
