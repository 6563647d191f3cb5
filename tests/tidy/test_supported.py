"""What is called supported is observed: settings and APIs each name a test with real brokers."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from holdfast.broker.apis.unserved import AS_KAFKA, UNLISTED
from holdfast.broker.settings import BROKER, TOPIC
from holdfast.protocol import APIS

TESTS = Path(__file__).resolve().parents[1]
REAL = ("clients", "cluster", "groups", "hostile", "ledger", "pipeline", "real", "settings")
"""Folders whose tests run broker processes."""
HARNESS = (TESTS / "settings" / "servers.py", TESTS / "settings" / "conftest.py")
API_TABLE = TESTS / "clients" / "apis.txt"
SUPPORTED = [one for one in (*BROKER.values(), *TOPIC.values()) if one.acts]


@cache
def source_of(node: str) -> tuple[str, str]:
    """A test's own source, with its decorators, and its whole file's; pytest.fail if it is not."""
    place, _, name = node.partition("::")
    folder, _, module = place.rpartition("/")
    if folder.split("/")[0] not in REAL:
        pytest.fail(f"{node}: tests in {folder} run no brokers", pytrace=False)
    path = TESTS / folder / f"test_{module}.py"
    if not path.exists():
        pytest.fail(f"{node}: there is no {path.relative_to(TESTS)}", pytrace=False)
    text = path.read_text(encoding="utf-8")
    for one in ast.parse(text).body:
        if isinstance(one, ast.FunctionDef) and one.name == f"test_{name}":
            first = min([one.lineno, *(mark.lineno for mark in one.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : one.end_lineno]), text
    return pytest.fail(f"{node}: {path.name} has no test_{name}", pytrace=False)


def mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\.?\w)", text) is not None


def test_a_supported_setting_is_set_and_observed_by_the_test_it_names() -> None:
    harness = "".join(path.read_text(encoding="utf-8") for path in HARNESS)
    findings = []
    for setting in SUPPORTED:
        assert setting.test is not None
        own, file = source_of(setting.test)
        if not mentions(own, setting.name):
            findings.append(f"{setting.name}: {setting.test} does not name it")
        if not re.search(rf'[":]{re.escape(setting.name)}"', file + harness):
            findings.append(f"{setting.name}: {setting.test} does not set it")
    assert not findings, "\n".join(findings)


def test_every_api_that_is_served_is_sent_by_a_client() -> None:
    """tests/clients/apis.txt: the API, who sends it, the test in which that is seen.

    An API of `unserved` is refused.
    """
    lines = API_TABLE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if line[:1] != "#"]
    served = [key for key in APIS if key not in (*AS_KAFKA, *UNLISTED)]
    assert [name for name, _, _ in rows] == [APIS[key].name for key in served]
    for name, _, node in rows:
        own, _ = source_of(node)
        assert mentions(own, f"{name}Request"), f"{node} does not look for {name}"
