"""Default bounds for a search, from the smallest on.

For every guard and switch there are bounds (a rung) within which its removal is known to cause a
violation. Otherwise, and with all guards in place, the ladder widens from one kind of fault to
several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from holdfast.search.bounds import Bounds


class Rung(NamedTuple):
    """Bounds, and the settings that they need unless the user has chosen others."""

    bounds: Bounds
    options: Mapping[str, str] = {}


_TWO = {"min_insync_replicas": "2"}

GUARDS: Mapping[str, Rung] = {
    "registration-incarnation": Rung(
        Bounds(
            replicas=2,
            settled=1,
            records=0,
            power_losses=1,
            crashes=1,
            restarts=1,
            survivals=1,
            slow_sessions=2,
            delays=2,
        ),
        _TWO,
    ),
    "higher-epoch-only": Rung(Bounds(elections=2, delays=1, overtakings=1)),
    "forget-non-isr-followers": Rung(
        Bounds(in_sync=2, late_joins=1, elections=2, delays=1, unheard=2)
    ),
    "joiner-position-known": Rung(Bounds(in_sync=2, late_joins=1, elections=2, delays=1)),
    "joiner-reached-high-watermark": Rung(Bounds(in_sync=2, delays=1)),
    "joiner-reached-epoch-start": Rung(Bounds(in_sync=2, crashes=2, delays=2)),
    "stale-answer-by-offset": Rung(Bounds(replicas=2, records=2, duplicates=1, delays=1), _TWO),
    "stale-answer-by-epoch": Rung(Bounds(elections=2, delays=2, unheard=1)),
    "isr-change-partition-epoch": Rung(
        Bounds(in_sync=2, lags=1, duplicates=1, overtakings=1, delays=2)
    ),
    "joiner-broker-epoch": Rung(
        Bounds(replicas=2, crashes=2, disk_losses=1, restarts=1, survivals=1, delays=2), _TWO
    ),
    "fence-fetch": Rung(Bounds(elections=1, expiries=1, delays=2)),
    "fence-truncation": Rung(Bounds(elections=1, delays=3)),
    "fence-high-watermark": Rung(Bounds(elections=2, delays=2, unheard=1)),
    "fence-isr-expand": Rung(Bounds(in_sync=2, records=2, elections=2, delays=2)),
    "answer-names-epoch": Rung(Bounds(replicas=2, elections=2, delays=1)),
    "truncate-on-missed-epoch": Rung(Bounds(records=2, elections=2, delays=1, unheard=1)),
    "epoch-at-election": Rung(Bounds(replicas=2, records=2, elections=2, delays=1)),
    "keep-first-epoch": Rung(
        Bounds(replicas=2, records=2, crashes=1, restarts=1, epoch_losses=1, delays=1)
    ),
    "maximal-isr": Rung(Bounds(in_sync=2, delays=2)),
    "eligible-leaders": Rung(Bounds(settled=1, records=0, power_losses=1, restarts=1)),
    "eligible-cleared-first": Rung(
        Bounds(replicas=2, stops=1, crashes=1, restarts=1, lowerings=1), _TWO
    ),
    "best-log-recovery": Rung(Bounds(replicas=2, power_losses=1, crashes=2, restarts=2), _TWO),
    "out-of-range-diverges": Rung(Bounds(settled=1, records=2, elections=1, delays=2)),
    "offline-on-io-error": Rung(Bounds(replicas=2, records=2, disk_errors=1)),
    "consumer-epoch-check": Rung(
        Bounds(replicas=2, records=3, crashes=2, restarts=1, readers=1), {"unclean": "on"}
    ),
    "follower-read-bound": Rung(Bounds(replicas=2, readers=1), {"reads": "any-replica"}),
    "flush-before-claim": Rung(
        Bounds(replicas=2, power_losses=2, restarts=2, flushes=2), {**_TWO, "flush": "every-append"}
    ),
    "reread-partition-epoch": Rung(Bounds(in_sync=2, losses=1, unheard=1, delays=1)),
}
"""Bounds within which the removal of a guard causes a violation."""

SWITCHES: Mapping[str, Rung] = {
    "truncation": Rung(Bounds(replicas=2, elections=2, delays=1)),
    "isr_update": Rung(Bounds(lags=1, delays=2)),
    "isr_expand": Rung(Bounds(in_sync=2, late_joins=1, delays=1)),
}

WIDENING: tuple[Rung, ...] = (
    Rung(Bounds(in_sync=2, delays=2)),
    Rung(Bounds(elections=1, delays=2)),
    Rung(Bounds(settled=1, crashes=1, restarts=1, delays=1)),
    Rung(Bounds(settled=1, power_losses=1, crashes=1, restarts=2)),
    Rung(Bounds(elections=1, lags=1, losses=1)),
    Rung(Bounds(records=2, elections=2, delays=1)),
    Rung(Bounds(lags=1, crashes=1, elections=1, delays=1)),
    Rung(Bounds(settled=1, power_losses=1, crashes=1, restarts=2, delays=1)),
    Rung(Bounds(settled=1, crashes=1, restarts=1, elections=1, delays=2)),
)


def ladder(options: Mapping[str, str]) -> Iterator[Rung]:
    """The rungs to try, in order."""
    guards = options.get("without", "").strip("()").split(",")
    for name in guards:
        if name in GUARDS:
            yield GUARDS[name]
    for name, rung in SWITCHES.items():
        if name in options:
            yield rung
    yield from WIDENING
