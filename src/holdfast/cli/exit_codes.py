"""Every exit code of every command, in one table; docs/commands.md shows the same.

A command's help lists its own codes, with `codes(…)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

GOOD: Final = 0
FAILED: Final = 1
LOST: Final = 2
DUPLICATES: Final = 3
CANNOT_DECIDE: Final = 4
BAD_INPUT: Final = 64
UNREACHABLE: Final = 69
"""EX_UNAVAILABLE of sysexits.h."""
OWN_BUG: Final = 70
MACHINE: Final = 74
"""EX_IOERR of sysexits.h."""
ORPHANED: Final = 75
"""EX_TEMPFAIL of sysexits.h."""
INTERRUPTED: Final = 130
OUTPUT_CLOSED: Final = 141
"""128 + SIGPIPE, what a shell reports for any program whose reader left early."""

MEANINGS: Final[Mapping[int, str]] = MappingProxyType(
    {
        GOOD: "good",
        FAILED: "the thing checked is wrong, or the cluster refused a request",
        LOST: "acknowledged records are lost, or a search reached its limit",
        DUPLICATES: "duplicates or wrong order only",
        CANNOT_DECIDE: "cannot decide",
        BAD_INPUT: "bad input: options, files, or a package that is not installed",
        UNREACHABLE: "no broker of the cluster answers",
        OWN_BUG: "a bug in Holdfast, with a report",
        MACHINE: "the machine failed, such as a full disk",
        ORPHANED: "a broker ended because the program that started it ended",
        INTERRUPTED: "interrupted",
        OUTPUT_CLOSED: "the reader of the output left early",
    }
)


def codes(meanings: Mapping[int, str]) -> str:
    """The last paragraph of a command's help: what its codes say, and the ones that all have."""
    common = {BAD_INPUT: "bad input", OWN_BUG: "a bug in Holdfast", INTERRUPTED: "interrupted"}
    all_of_them = sorted({**common, **meanings}.items())
    return f"Exit codes: {', '.join(f'{code} {words}' for code, words in all_of_them)}."
