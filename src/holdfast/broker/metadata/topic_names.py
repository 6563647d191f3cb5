"""Valid topic names, and the names of internal topics."""

from __future__ import annotations

import re
from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
LONGEST_NAME: Final = 249

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def invalid_name_reason(name: str) -> str | None:
    """Kafka's reason if the name is not allowed; None if it is. A name becomes a directory."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > LONGEST_NAME:
        return f"the length of '{name}' is longer than the max allowed length {LONGEST_NAME}"
    if not _LEGAL.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None
