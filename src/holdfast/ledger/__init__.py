"""What producers were promised and what consumers did, kept on disk so that it survives kill -9.

`LedgerProducer` and `LedgerConsumer` stand in for confluent-kafka's classes; the readers give the
ledger back as Arrow batches. The format is in docs/ledger.md. Needs the extra "ledger"; names are
imported when they are first asked for, and a missing package is told by its name.
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

_HOMES = {
    "COMMITTED": "holdfast.ledger.columns",
    "CONSUMED": "holdfast.ledger.columns",
    "Kind": "holdfast.ledger.columns",
    "LedgerConsumer": "holdfast.ledger.consumer",
    "LedgerProducer": "holdfast.ledger.producer",
    "SENT": "holdfast.ledger.columns",
    "files": "holdfast.ledger.reading",
    "read_committed": "holdfast.ledger.reading",
    "read_consumed": "holdfast.ledger.reading",
    "read_file": "holdfast.ledger.reading",
    "read_ledger": "holdfast.ledger.reading",
    "runs": "holdfast.ledger.reading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        raise missing_package(name, error) from None
