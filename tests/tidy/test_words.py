"""The pages that people read use Kafka's words."""

from __future__ import annotations

from pathlib import Path

from tests.tidy.test_tidy import expect_none
from tests.tidy.words import ENGLISH, VOCABULARY, misused

PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "bench/README.md",
)
SOURCE = ("src/holdfast/**/*.py", "src/holdfast/**/*.scenario", "src/holdfast/**/*.txt")
TESTS = ("tests/[!t]*/**/*.py", "tests/*.py", "bench/*.py")

ALLOWED = {
    "ARCHITECTURE.md": ("`/holdfast/lives/N`",),
    "README.md": (
        "expire-session, heal\n",
        "`heal`",
    ),
    "docs/chaos.md": ("`store-cut`",),
    "docs/lab.md": ("`cut`", "`one-way-cut`"),
    "docs/testserver.md": ("`cut`", "`heal`"),
}
"""Commands, faults and output of the program, as they are today."""


COMMANDS = ("cut", "heal")
"""Faults that users type, and kinds of trace events: no words to search for in source code."""

IN_SOURCE = {
    "src/holdfast/broker/membership/registration.py": ("/holdfast/lives/N",),
    "src/holdfast/cli/lab/pictures.py": ('"stories": ',),
    "src/holdfast/coordination/embedded/sessions.py": ("{session}.bell",),
    "src/holdfast/coordination/paths.py": ("/holdfast/lives",),
    "src/holdfast/lab/judge/explain.py": (
        '"acknowledged": "promised"',
        '"isr": "isr_at_promise"',
        '"holders": "holders_at_promise"',
        '"copies": "lives"',
    ),
    "src/holdfast/search/advise/losses.py": ('"story": ',),
    "src/holdfast/search/advise/safer.py": ('"told": ',),
    "tests/unit/cli/test_lab.py": ('["stories"]', '"title", "stories"'),
    "tests/unit/cli/test_lab_broker.py": ('["stories"]',),
    "tests/unit/lab/test_explain.py": (
        '"promised",',
        '"isr_at_promise",',
        '"holders_at_promise",',
        '"lives",',
    ),
}
"""Paths, files and JSON keys that users' programs read."""


def test_source_and_tests_use_kafkas_words() -> None:
    words = {word: say for word, say in VOCABULARY.items() if not word.startswith(COMMANDS)}
    expect_none(misused((*SOURCE, *TESTS), words, IN_SOURCE))


def test_pages_use_kafkas_words() -> None:
    expect_none(misused(PAGES, {**VOCABULARY, **ENGLISH}, ALLOWED))


def test_the_search_finds_words_and_allowances_that_nothing_needs(tmp_path: Path) -> None:
    text = "Whoever asks\nat\nonce. `cut` works; a row a record, and my_reign, foreign.\n"
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    allowed = {"page.md": ("`cut`", "`heal`"), "other.md": ("a",)}
    assert misused(["page.md", "none/*.md"], {**VOCABULARY, **ENGLISH}, allowed, tmp_path) == [
        "none/*.md: no such file",
        "other.md: allowed, but not searched",
        "page.md: '`heal`' is gone; remove it from the allow list",
        "page.md:3: 'reign'; say leader epoch, controller epoch, coordinator shard",
        "page.md:1: 'Whoever'; say the client, the follower, the caller",
        "page.md:2: 'at once'; say immediately, at the same time",
        "page.md:3: 'a row a record'; say one per record",
    ]
