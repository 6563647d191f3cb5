"""Writes the playground's folder: static files with relative addresses, for any web server.

The lab goes into a zip file as it is; the page unpacks it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from holdfast.core import guard_explanation, guard_names
from holdfast.lab import HANDLERS, OPTIONS, Scenario, ids, load, section_of
from holdfast.web.playground.case import FREE_PLAY, Case, base_of
from holdfast.web.playground.session import answer
from holdfast.web.stepper_page import safe_json
from holdfast.web.theme import DARK, LIGHT, asset, filled, style_sheet, variables

FIRST = "loss-restart-truncation"
PACKAGES = ("model", "core", "lab", "web")
PYODIDE = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
"""What of Pyodide the page needs: no packages."""


def write_playground(folder: Path, pyodide: Path) -> None:
    """Write everything that the folder has to contain."""
    (folder / "pyodide").mkdir(parents=True, exist_ok=True)
    for name in PYODIDE:
        shutil.copyfile(pyodide / name, folder / "pyodide" / name)
    contents = {
        "<!--STEPPER-->": asset("stepper_section.html"),
        "<!--KNOWN-->": safe_json(_known()),
    }
    texts = {
        "index.html": filled("playground/index.html", "Holdfast playground", contents),
        "playground.css": _style_sheet(),
        "stepper.js": asset("stepper.js"),
        **{
            name: asset(f"playground/{name}")
            for name in ("playground.js", "controls.js", "worker.js")
        },
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    write_code(folder / "holdfast.zip")
    (folder / "opening.json").write_text(_opening(), encoding="utf-8")


def _opening() -> str:
    """The answer about the first case: the page shows it while Python is still loading."""
    return answer(json.dumps({"ask": "play", "case": Case(scenario=FIRST).to_dict()}))


def write_code(path: Path) -> None:
    """The modules and scenarios, with one date for all, so that a build can be repeated."""
    root = Path(str(files("holdfast")))
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for one in _code(root):
            name = ZipInfo((Path("holdfast") / one.relative_to(root)).as_posix())
            name.compress_type = ZIP_DEFLATED
            archive.writestr(name, one.read_bytes())


def _code(root: Path) -> Iterator[Path]:
    yield root / "__init__.py"
    for package in PACKAGES:
        found = (root / package).rglob("*")
        yield from sorted(one for one in found if one.suffix in (".py", ".scenario"))


def _style_sheet() -> str:
    light = f":root{{color-scheme:light dark;{variables(LIGHT)}}}"
    dark = f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
    picture = style_sheet(variables=True)
    return "\n".join(
        (light, dark, asset("stepper.css"), picture, asset("playground/playground.css"))
    )


def _known() -> dict[str, Any]:
    """What the page can show before Python runs."""
    sections: dict[str, list[dict[str, Any]]] = {}
    for one in map(load, ids()):
        sections.setdefault(_words(section_of(one)), []).append(_scenario(one))
    return {
        "first": FIRST,
        "free": FREE_PLAY,
        "freePlay": _scenario(base_of(Case(scenario=FREE_PLAY))),
        "sections": [{"name": name, "scenarios": rows} for name, rows in sections.items()],
        "guards": [{"name": one, "explanation": guard_explanation(one)} for one in guard_names()],
        "settings": [
            {"name": name, "values": one.values, "meaning": one.meaning}
            for name, one in OPTIONS.items()
            if name != "without"
        ],
        "commands": [one.usage for one in HANDLERS.values()],
    }


def _scenario(one: Scenario) -> dict[str, Any]:
    return {"id": one.id, "title": one.title, "variants": [each.name for each in one.variants]}


def _words(section: str) -> str:
    return section.partition("_")[2].replace("_", " ").capitalize()
