"""Names that nobody has had before, drawn from a broker's own dice."""

from __future__ import annotations

import random
import uuid


def new_uuid(rng: random.Random) -> uuid.UUID:
    """A random UUID (version 4)."""
    return uuid.UUID(int=rng.getrandbits(128), version=4)
