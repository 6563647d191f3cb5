"""Pages render: links lead somewhere, and the rows of a table have equal columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.test_tidy import ROOT, at, expect_none

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`]*`")


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/*.md")])


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines outside fenced and indented code."""
    is_fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif not is_fenced and not line.startswith("    "):
            yield number, line


def anchors(path: Path) -> set[str]:
    """As GitHub makes them from headings."""
    heads = [line.lstrip("#").strip() for _, line in prose(path) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_lead_somewhere() -> None:
    findings = []
    for path in pages():
        for number, line in prose(path):
            for target in LINK.findall(CODE.sub("", line)):
                place, _, anchor = target.partition("#")
                file = (path.parent / place) if place else path
                if "://" in target:
                    continue
                if not file.exists():
                    findings.append(at(path, number, f"{target}: no such file"))
                elif anchor and anchor not in anchors(file):
                    findings.append(at(path, number, f"{target}: no such heading"))
    expect_none(findings)


def test_the_rows_of_a_table_have_equal_columns() -> None:
    findings = []
    for path in pages():
        columns = 0
        for number, line in prose(path):
            if not line.startswith("|"):
                columns = 0
                continue
            found = line.replace(r"\|", "").count("|")  # GitHub splits code spans, too
            columns = columns or found
            if found != columns:
                findings.append(
                    at(path, number, f"{found - 1} columns, the head has {columns - 1}")
                )
    expect_none(findings)
