"""Tests of the code itself: sizes, leftovers, dead modules, and what a committed file may name.

Every failure is a list of lines "file:line: what is wrong; what to do". The patterns are written
so that this file does not match them.
"""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "holdfast"

FUNCTION_LINES = 70
MODULE_LINES = 400
FOLDER_MODULES = 16
ONE_MODULE_EACH = ("broker/apis", "protocol/messages")
"""Folders that hold one module for each API: their order is the list of APIs."""
LINE_COLUMNS = 100

LEFTOVER = re.compile(r"\b((T)ODO|(F)IXME|(X)XX)\b")
SLEEP = re.compile(r"time\.sleep\(|from time import .*\bsleep\b")
MACHINE_OR_REGISTRY = re.compile(
    r"/(w)ork/|/(r)oot/|/(f)arm/"
    r"|https?://[a-z0-9.-]*(pypi|pythonhosted|maven|npmjs|crates|golang|debian)[.a-z]*/"
)
LAZY_TARGET = re.compile(r"(holdfast(?:\.\w+)*)(?::\w+)?")
PIN = re.compile(r"[a-z0-9-]+==\S+( ; .+)? \\")
PIN_HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def committed_text() -> Iterator[tuple[Path, str]]:
    """Every text file that is, or is about to be, committed."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        names = sorted(set(listing.stdout.split("\0")) - {""})
    else:  # an unpacked source archive holds nothing but committed files, and perhaps .venv
        names = sorted(
            str(path.relative_to(ROOT))
            for path in ROOT.rglob("*")
            if not any(part.startswith(".venv") for part in path.parts)
        )
    for path in (ROOT / name for name in names):
        if path.is_file():
            content = path.read_bytes()
            if b"\0" not in content:
                yield path, content.decode("utf-8", errors="replace")


def lines_of(path: Path) -> Iterable[tuple[int, str]]:
    return enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)


def at(path: Path, line: int, message: str) -> str:
    return f"{path.relative_to(ROOT)}:{line}: {message}"


def expect_none(findings: list[str]) -> None:
    if findings:
        pytest.fail("\n".join(findings), pytrace=False)


def test_functions_fit_on_a_screen() -> None:
    findings = []
    for path in python_files("src", "tests", "bench"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                size = node.end_lineno - node.lineno + 1
                if size > FUNCTION_LINES:
                    what = f"{node.name} has {size} lines, the wall is {FUNCTION_LINES}"
                    findings.append(at(path, node.lineno, f"{what}; split it by duty"))
    expect_none(findings)


def test_modules_stay_small() -> None:
    sizes = [(path, len(list(lines_of(path)))) for path in python_files("src", "tests", "bench")]
    expect_none(
        [
            at(path, size, f"{size} lines, the wall is {MODULE_LINES}; split it by duty")
            for path, size in sizes
            if size > MODULE_LINES
        ]
    )


def test_folders_stay_small() -> None:
    findings = []
    for folder in sorted(path.parent for path in PACKAGE.rglob("__init__.py")):
        size = len(list(folder.glob("*.py"))) - 1
        if size > FOLDER_MODULES and str(folder.relative_to(PACKAGE)) not in ONE_MODULE_EACH:
            what = f"{size} modules, the wall is {FOLDER_MODULES}"
            findings.append(at(folder, 1, f"{what}; group them by duty"))
    expect_none(findings)


def test_lines_fit() -> None:
    expect_none(
        [
            at(path, number, f"{len(line)} columns, the wall is {LINE_COLUMNS}; break the line")
            for path in python_files("src", "tests", "bench")
            for number, line in lines_of(path)
            if len(line) > LINE_COLUMNS
        ]
    )


def test_a_leftover_says_what_ends_it() -> None:
    expect_none(
        [
            at(path, number, "a note without an end; do it, or write 'until …' in the same line")
            for path in python_files("src", "tests", "bench")
            for number, line in lines_of(path)
            if LEFTOVER.search(line) and "until" not in line
        ]
    )


def test_no_test_sleeps() -> None:
    expect_none(
        [
            at(path, number, "a test that sleeps; wait for a condition, or use simulated time")
            for path in python_files("tests")
            for number, line in lines_of(path)
            if SLEEP.search(line)
        ]
    )


def test_every_room_opens_with_its_duty() -> None:
    findings = []
    for room in sorted(path for path in PACKAGE.iterdir() if any(path.glob("*.py"))):
        opening = room / "__init__.py"
        if not opening.exists():
            findings.append(at(opening, 1, "missing; create it with the room's duty as docstring"))
        elif ast.get_docstring(ast.parse(opening.read_text(encoding="utf-8"))) is None:
            findings.append(at(opening, 1, "no docstring; open with the room's duty"))
    expect_none(findings)


def test_pure_packages_are_held_by_their_contract() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    [held] = [c["source_modules"] for c in contracts if c["name"].startswith("Pure packages")]
    expect_none(
        [
            at(ROOT / "pyproject.toml", 1, f"name holdfast.{room} in the contract 'Pure packages'")
            for room in ("model", "core", "protocol")
            if (PACKAGE / room / "__init__.py").exists() and f"holdfast.{room}" not in held
        ]
    )


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def names_used_by(path: Path) -> set[str]:
    """Modules that a file imports, or names as "module:attribute" or as a pytest plugin."""
    used: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                used.update(alias.name for alias in node.names)
            case ast.ImportFrom(module=str(source), level=0):
                used.add(source)
                used.update(f"{source}.{alias.name}" for alias in node.names)
            case ast.Constant(value=str(text)):
                if target := LAZY_TARGET.fullmatch(text):
                    used.add(target[1])
            case _:
                pass
    return used


def entry_points() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tables = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    return {target.split(":")[0] for table in tables for target in table.values()}


def test_no_module_is_dead() -> None:
    alive = entry_points()
    for path in [*python_files("src"), *ROOT.glob("tests/**/conftest.py")]:
        is_ours = path.is_relative_to(PACKAGE)
        alive |= names_used_by(path) - ({module_name(path)} if is_ours else set())
    expect_none(
        [
            at(path, 1, "nothing imports this module; use it or remove it")
            for path in python_files("src")
            if path.name not in ("__init__.py", "__main__.py") and module_name(path) not in alive
        ]
    )


def test_no_committed_file_names_a_registry_or_this_machine() -> None:
    expect_none(
        [
            at(path, number, f"'{found[0]}' holds only here; write a relative path or drop it")
            for path, text in committed_text()
            if path.name not in ("LICENSE", "NOTICE")
            for number, line in enumerate(text.splitlines(), start=1)
            if (found := MACHINE_OR_REGISTRY.search(line))
        ]
    )


def test_requirements_hold_pins_and_hashes_only() -> None:
    path = ROOT / "requirements.txt"
    expect_none(
        [
            at(path, number, "neither a pin nor a hash; recompile with `make pins`")
            for number, line in lines_of(path)
            if not (PIN.fullmatch(line) or PIN_HASH.fullmatch(line))
        ]
    )
