"""Measures the figures: losses, unavailability, copies, waits, survived failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import mean, median, quantiles
from typing import Any, Final

from holdfast.search.compare.schedule import DURATION_MS, LAG_MS, Contender, schedule_of
from holdfast.search.compare.trace_figures import Waits, waits_of
from holdfast.search.compare.trial import DELAY_MS, Trial

SETTLED_MS: Final = 2_000
RECOVERED_MS: Final = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One contender's results."""

    name: str
    acknowledged: int
    lost: int
    """Acknowledged records that are gone, over all schedules."""
    runs_with_loss: int
    unavailable_percent: float
    """The share of the time under faults in which no record was acknowledged."""
    copies_least: int
    """The fewest replicas that held a record at the moment of its acknowledgement."""
    copies_mean: float
    round_trips: float
    """From send to acknowledgement when nothing fails and every message needs the same time."""
    wait_median_ms: float
    wait_p99_ms: float
    """The same when some messages are slow, and nothing fails."""
    writes_survive: int
    """The number of brokers, any of them, that may crash at the same time while writes continue."""
    data_survives: int
    """So many machines, all in sync, may lose power at the same time without a loss."""
    data_survives_least: int
    """The same while as many followers are unreachable as writes allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The cost of one combination, without random schedules."""

    writes_survive: int
    copies_least: int
    """The fewest replicas at an acknowledgement, with as many unreachable followers as possible."""
    round_trips: float
    flushes: float
    """Flushes of all disks per acknowledged record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The figures of all contenders under the same schedules."""

    replicas: int
    schedules: int
    duration_ms: int
    figures: tuple[Figures, ...]

    def to_dict(self) -> dict[str, Any]:
        """With stable keys."""
        return {"schema": "holdfast-lab-compare/1", **asdict(self)}


def compare(
    contenders: Sequence[Contender],
    replicas: int,
    seeds: Sequence[int],
    tick: Callable[[], None] = lambda: None,
) -> Comparison:
    """Run everything; `tick` is called after every schedule of every contender."""
    names = _names(replicas)
    return Comparison(
        replicas=replicas,
        schedules=len(seeds),
        duration_ms=DURATION_MS,
        figures=tuple(_figures(one, names, seeds, tick) for one in contenders),
    )


def _figures(
    contender: Contender, names: Sequence[str], seeds: Sequence[int], tick: Callable[[], None]
) -> Figures:
    acknowledged, lost, waits = 0, [], []
    for seed in seeds:
        trial = Trial(contender, names, jitter=seed)
        trial.run(schedule_of(seed, names), DURATION_MS)
        waits.append(waits_of(trial.world.recorder.events, DURATION_MS))
        trial.end_faults()
        acknowledged += trial.acknowledged()
        lost.append(trial.lost())
        tick()
    calm, uneven = _undisturbed(contender, names, None), _undisturbed(contender, names, 1)
    copies = [count for one in waits for count in one.copies]
    away = _most_unreachable(contender, names)
    return Figures(
        name=contender.name,
        acknowledged=acknowledged,
        lost=sum(lost),
        runs_with_loss=sum(bool(one) for one in lost),
        unavailable_percent=100 * mean(one.silent_ms for one in waits) / DURATION_MS,
        copies_least=min(copies),
        copies_mean=mean(copies),
        round_trips=median(calm.waits_ms) / (2 * DELAY_MS),
        wait_median_ms=median(uneven.waits_ms),
        wait_p99_ms=quantiles(uneven.waits_ms, n=100)[98],
        writes_survive=_most(names, lambda group: _writes_after(contender, names, group)),
        data_survives=_most(names, lambda group: _keeps(contender, names, group, 0)),
        data_survives_least=_most(names, lambda group: _keeps(contender, names, group, away)),
    )


def price(contender: Contender, replicas: int) -> Price:
    """Measure with every group of brokers. With acks=0 there is no wait to measure."""
    names = _names(replicas)
    away = _most_unreachable(contender, names)
    calm = Trial(contender, names, None)
    calm.run((), SETTLED_MS)
    events = calm.world.recorder.events
    least = _with_unreachable(contender, names, away).world.recorder.events
    return Price(
        writes_survive=_most(names, lambda group: _writes_after(contender, names, group)),
        copies_least=min(waits_of(least, SETTLED_MS).copies, default=0),
        round_trips=median(waits_of(events, SETTLED_MS).waits_ms or (0,)) / (2 * DELAY_MS),
        flushes=sum(one.kind == "flushed" for one in events) / max(1, calm.acknowledged()),
    )


def data_survives(contender: Contender, replicas: int) -> tuple[int, int]:
    """Simultaneous power failures without a loss: with all in sync, and with the fewest copies."""
    names = _names(replicas)
    away = _most_unreachable(contender, names)
    return (
        _most(names, lambda group: _keeps(contender, names, group, 0)),
        _most(names, lambda group: _keeps(contender, names, group, away)),
    )


def _names(replicas: int) -> tuple[str, ...]:
    return tuple(f"b{number}" for number in range(1, replicas + 1))


def _undisturbed(contender: Contender, names: Sequence[str], jitter: int | None) -> Waits:
    trial = Trial(contender, names, jitter)
    trial.run((), DURATION_MS)
    return waits_of(trial.world.recorder.events, DURATION_MS)


def _most(names: Sequence[str], survives: Callable[[tuple[str, ...]], bool]) -> int:
    """The largest number such that every group of that size may fail."""
    for size in range(1, len(names) + 1):
        if not all(survives(group) for group in combinations(names, size)):
            return size - 1
    return len(names)


def _writes_after(contender: Contender, names: Sequence[str], group: tuple[str, ...]) -> bool:
    trial = Trial(contender, names, None)
    trial.run((), SETTLED_MS)
    for name in group:
        trial.kill(trial.world.brokers[name], power=False)
    trial.world.advance(RECOVERED_MS)
    before = trial.acknowledged()
    trial.world.advance(SETTLED_MS)
    return trial.acknowledged() > before


def _most_unreachable(contender: Contender, names: Sequence[str]) -> int:
    """The number of followers that may be unreachable while writes continue."""
    for count in range(len(names) - 1, 0, -1):
        trial = _with_unreachable(contender, names, count)
        before = trial.acknowledged()
        trial.world.advance(SETTLED_MS)
        if trial.acknowledged() > before:
            return count
    return 0


def _with_unreachable(contender: Contender, names: Sequence[str], count: int) -> Trial:
    """A trial in which the last followers have been unreachable until they left the ISR."""
    trial = Trial(contender, names, None)
    trial.run((), SETTLED_MS)
    for name in names[len(names) - count :]:
        trial.disconnect(trial.world.brokers[name])
    trial.world.advance(LAG_MS + SETTLED_MS)
    return trial


def _keeps(
    contender: Contender, names: Sequence[str], group: tuple[str, ...], out_of_reach: int
) -> bool:
    """Whether no acknowledged record is lost when a group loses power at the same time."""
    trial = _with_unreachable(contender, names, out_of_reach)
    if not out_of_reach:
        trial.sends = False
        trial.world.advance(SETTLED_MS)
    for name in group:
        trial.kill(trial.world.brokers[name], power=True)
    trial.end_faults()
    return trial.lost() == 0
