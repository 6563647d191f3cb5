"""Runs a program under two hash seeds: what it prints must not depend on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def printed(program: str) -> list[Any]:
    """The JSON that a program prints, under each hash seed."""
    return [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", program],
                capture_output=True,
                text=True,
                timeout=1200,
                check=True,
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
            ).stdout
        )
        for hash_seed in ("1", "4242")
    ]
