"""A record on disk of what producers sent and consumers did; it survives kill -9 of the client.

`LedgerProducer` and `LedgerConsumer` replace confluent-kafka's classes. The readers return the
ledger as Arrow batches. docs/ledger.md describes the format. The package needs the extra "ledger".
It imports each name on its first use, and the error for a missing package names that package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.ledger.errors import LedgerError, missing_package

if TYPE_CHECKING:
    from holdfast.ledger.columns import COMMITTED, CONSUMED, SENT, Kind
    from holdfast.ledger.consumer import LedgerConsumer
    from holdfast.ledger.producer import LedgerProducer
    from holdfast.ledger.reading import (
        files,
        read_committed,
        read_consumed,
        read_file,
        read_ledger,
        runs,
    )

__all__ = [
    "COMMITTED",
    "CONSUMED",
    "SENT",
    "Kind",
    "LedgerConsumer",
    "LedgerError",
    "LedgerProducer",
    "files",
    "read_committed",
    "read_consumed",
    "read_file",
    "read_ledger",
    "runs",
]

_READERS = ("files", "read_committed", "read_consumed", "read_file", "read_ledger", "runs")
_HOMES = {
    **dict.fromkeys(("COMMITTED", "CONSUMED", "SENT", "Kind"), "holdfast.ledger.columns"),
    "LedgerConsumer": "holdfast.ledger.consumer",
    "LedgerProducer": "holdfast.ledger.producer",
    **dict.fromkeys(_READERS, "holdfast.ledger.reading"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        raise missing_package(name, error) from None
