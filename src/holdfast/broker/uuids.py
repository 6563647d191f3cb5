"""Names that nobody has had before, drawn from a broker's own dice."""

from __future__ import annotations

import random
import uuid


def new_uuid(dice: random.Random) -> uuid.UUID:
    """A random UUID (version 4)."""
    return uuid.UUID(int=dice.getrandbits(128), version=4)
