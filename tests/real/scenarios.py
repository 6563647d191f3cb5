"""Lists the scenarios that run on real brokers, and why some do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import pytest

T = TypeVar("T", bound=Callable[..., None])

EMBEDDED, ZOOKEEPER = "embedded", "zookeeper"
PLAIN, NEAREST = "plain", "nearest"
"""Settings of a cluster: as they are, or with reads from the nearest replica."""

PLAYED: Final[dict[str, tuple[str, ...]]] = {}
"""Every scenario with a test, and the variants that it runs."""

NOT_REAL: Final = {
    "loss-isr-race": "needs a request handler held between its check and its proposal; the "
    "broker does both in one step of its loop, and nothing outside can come between",
}
"""Why a scenario cannot run on real brokers."""

NOT_REAL_VARIANTS: Final[dict[tuple[str, str], str]] = {}
"""The same for single variants that need neither another rule nor a missing guard."""


class Play(NamedTuple):
    """One scenario in one variant on one store."""

    scenario: str
    variant: str
    store: str
    flavour: str


def real(
    scenario: str,
    *variants: str,
    flavour: str = PLAIN,
    stores: tuple[str, ...] = (EMBEDDED, ZOOKEEPER),
    long: tuple[str, ...] = (ZOOKEEPER,),
) -> Callable[[T], T]:
    """Run a scenario of the lab on real brokers. `long`: stores that only `make test-long` uses."""
    chosen = variants or ("default",)
    PLAYED[scenario] = (*PLAYED.get(scenario, ()), *chosen)
    plays = [
        pytest.param(
            Play(scenario, variant, store, flavour),
            variant,
            id=f"{scenario}-{variant}-{store}",
            marks=[pytest.mark.slow, *([pytest.mark.long] if store in long else [])],
        )
        for store in stores
        for variant in chosen
    ]
    return pytest.mark.parametrize(("stage", "variant"), plays, indirect=["stage"])


ON_BOTH: Final[tuple[str, ...]] = ()
"""For scenarios that `make test` runs on ZooKeeper too."""
