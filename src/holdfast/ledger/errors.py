"""What can be wrong with a ledger, told so that its owner knows what to do."""

from __future__ import annotations


class LedgerError(Exception):
    """A ledger cannot be written or read. `hint` says what to do about it."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(f"{message}; {hint}")
        self.message = message
        self.hint = hint


def missing_package(wanted: str, error: ModuleNotFoundError) -> Exception:
    """For a package of the extra; anything else missing is our own mistake and stays as it is."""
    package = (error.name or "").partition(".")[0]
    if package not in ("confluent_kafka", "numpy", "pyarrow"):
        return error
    return LedgerError(
        f"holdfast.ledger.{wanted} needs the package {package.replace('_', '-')}",
        hint='pip install "holdfast[ledger]"',
    )
