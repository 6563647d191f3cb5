"""The complete advice: what can be lost, what is survived, what would be safer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from holdfast.search import HOLDS, LIMIT, VIOLATED
from holdfast.search.advise.combination import Asked
from holdfast.search.advise.losses import Loss, Searched
from holdfast.search.advise.safer import Change, Remedy, Safer, contender_of
from holdfast.search.advise.scenarios import losses_of
from holdfast.search.advise.searches import Watch, search_all
from holdfast.search.compare import Price, data_survives
from holdfast.search.limits import Limits


class Line(NamedTuple):
    """One thing that can go wrong, and every single change that prevents it."""

    loss: Loss
    remedies: tuple[Change, ...]
    undecided: tuple[Change, ...]
    """Changes for which the search reached a limit before it was clear whether they help."""

    def to_dict(self) -> dict[str, Any]:
        """With stable keys."""
        return {
            **self.loss.to_dict(),
            "remedies": [{"setting": key, "value": text} for key, text in self.remedies],
            "undecided": [{"setting": key, "value": text} for key, text in self.undecided],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The advice on one combination."""

    asked: Asked
    failures: int
    """The number of failures of each kind that was tried."""
    lines: tuple[Line, ...]
    nearest: Remedy | None
    """The single change that removes most lines; losses count before disorder."""
    searched: tuple[Searched, ...]
    price: Price
    data_survives: int
    data_survives_least: int
    seconds: float

    @property
    def verdict(self) -> str:
        """Whether an acknowledged record can be lost."""
        if any(line.loss.is_loss for line in self.lines):
            return VIOLATED
        return LIMIT if any(one.verdict == LIMIT for one in self.searched) else HOLDS

    def to_dict(self) -> dict[str, Any]:
        """With stable keys."""
        return {
            "schema": "holdfast-advise/1",
            "verdict": self.verdict,
            "replicas": self.asked.replicas,
            "settings": dict(self.asked.options),
            "sources": dict(self.asked.sources),
            "not_looked_at": list(self.asked.not_looked_at),
            "failures": self.failures,
            "lines": [one.to_dict() for one in self.lines],
            "survives": {
                "writes": self.price.writes_survive,
                "data": self.data_survives,
                "data_with_fewest_copies": self.data_survives_least,
            },
            "price": asdict(self.price),
            "nearest": self.nearest.to_dict() if self.nearest else None,
            "searched": [asdict(one) for one in self.searched],
            "seconds": round(self.seconds, 3),
        }


def advise(
    asked: Asked,
    *,
    failures: int | None = None,
    seconds: float,
    watch: Watch = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Run everything; searches share so many seconds, remedies half as many."""
    began = time.monotonic()

    tried = min(failures or asked.replicas, asked.replicas)
    say("searching")
    findings = search_all(asked, tried, _budget(seconds), watch)
    say("playing the catalogue")
    losses = losses_of(asked, findings.losses, tried)
    say("counting what is survived")
    least = data_survives(contender_of(asked), asked.replicas)
    say("looking for a safer setting")
    # Remedies have their own budget: a stopped search must not prevent one from being found.
    safer = Safer(asked, _budget(seconds / 2))
    lines = tuple(_line(one, safer) for one in losses)
    best = _most_helpful(lines)
    return Advice(
        asked=asked,
        failures=tried,
        lines=lines,
        nearest=safer.remedy(best) if best else None,
        searched=tuple(findings.searched),
        price=safer.price(),
        data_survives=least[0],
        data_survives_least=least[1],
        seconds=time.monotonic() - began,
    )


def _line(loss: Loss, safer: Safer) -> Line:
    tried = safer.changes_for(loss)
    return Line(
        loss=loss,
        remedies=tuple(change for change, verdict in tried.items() if verdict == HOLDS),
        undecided=tuple(change for change, verdict in tried.items() if verdict == LIMIT),
    )


def _most_helpful(lines: tuple[Line, ...]) -> Change | None:
    losses = [one for one in lines if one.loss.is_loss] or lines
    counted = Counter(change for one in losses for change in one.remedies)
    return counted.most_common(1)[0][0] if counted else None


def _budget(seconds: float) -> Callable[[], Limits]:
    """The rest of the budget, and a little when it is used up."""
    began = time.monotonic()
    return lambda: Limits(seconds=max(0.1, seconds - (time.monotonic() - began)))
