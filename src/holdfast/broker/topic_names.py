"""What a topic may be called, and which topics are ours."""

from __future__ import annotations

import re
from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
LONGEST_NAME: Final = 249

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def why_not_a_name(name: str) -> str | None:
    """A sentence if the name is not allowed; None if it is. A name becomes a directory."""
    if not name:
        return "a topic needs a name"
    if name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if len(name) > LONGEST_NAME:
        return f"a topic's name has at most {LONGEST_NAME} characters, this one has {len(name)}"
    if not _LEGAL.fullmatch(name):
        return f"{name!r}: only letters, digits, '.', '_' and '-' are allowed in a topic's name"
    return None
