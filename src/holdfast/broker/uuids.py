"""UUIDs from the broker's injected random generator."""

from __future__ import annotations

import random
import uuid


def new_uuid(rng: random.Random) -> uuid.UUID:
    """A random UUID (version 4)."""
    return uuid.UUID(int=rng.getrandbits(128), version=4)
