"""How long Hypothesis searches: `dev` while you write, `ci` always the same, `night` for hours.

Chosen with HYPOTHESIS_PROFILE or `--hypothesis-profile`; `ci` is the default, so that a red
run means a changed program, and neither a lucky draw nor a busy machine. Failures print a blob to
replay them with. A night needs `--timeout=0`: pytest-timeout takes it for a hang.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SLOWLY = [HealthCheck.too_slow]

settings.register_profile(
    "dev", max_examples=50, deadline=None, print_blob=True, suppress_health_check=SLOWLY
)
settings.register_profile(
    "ci",
    max_examples=150,
    stateful_step_count=60,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=SLOWLY,
)
settings.register_profile(
    "night",
    max_examples=20_000,
    stateful_step_count=150,
    deadline=None,
    print_blob=True,
    suppress_health_check=SLOWLY,
)


def load() -> None:
    """Before any test is imported: a test takes the profile that it finds then."""
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
