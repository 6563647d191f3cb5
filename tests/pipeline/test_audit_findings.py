"""The words of the audit, and the exit code they lead to."""

import pytest

from holdfast.pipeline.audit.findings.findings import (
    DUPLICATE,
    EXPIRED,
    GAP,
    KINDS,
    LOST,
    REFUSED_BUT_READ,
    UNSEEN_TAIL,
    Exit,
    exit_code,
)


@pytest.mark.parametrize(
    ("kinds", "is_undecided", "code"),
    [
        ([], False, Exit.GOOD),
        ([EXPIRED, REFUSED_BUT_READ], False, Exit.GOOD),
        ([DUPLICATE], False, Exit.ORDER),
        ([DUPLICATE, GAP], False, Exit.WRONG),
        ([DUPLICATE, GAP], True, Exit.UNDECIDED),
        ([UNSEEN_TAIL, DUPLICATE], False, Exit.UNDECIDED),
        ([LOST, DUPLICATE], True, Exit.LOSS),
    ],
)
def test_the_worst_finding_decides(kinds: list[str], is_undecided: bool, code: Exit) -> None:
    assert exit_code(dict.fromkeys(kinds, 1), is_undecided=is_undecided) is code


def test_a_count_of_zero_is_no_finding() -> None:
    assert exit_code(dict.fromkeys(KINDS, 0), is_undecided=False) is Exit.GOOD
