"""Errors of a ledger, each with a hint for its owner."""

from __future__ import annotations


class LedgerError(Exception):
    """A ledger cannot be written or read. `hint` says what to do."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(f"{message}; {hint}")
        self.message = message
        self.hint = hint


def missing_package(wanted: str, error: ModuleNotFoundError) -> Exception:
    """The error for a missing package of the extra; any other missing module is a bug."""
    package = (error.name or "").partition(".")[0]
    if package not in ("confluent_kafka", "numpy", "pyarrow"):
        return error
    return LedgerError(
        f"holdfast.ledger.{wanted} needs the package {package.replace('_', '-')}",
        hint='pip install "holdfast[ledger]"',
    )
