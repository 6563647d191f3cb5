"""Finds the nearest safer setting: tries one change at a time on the run that shows the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from holdfast.lab.scenarios.options import build, parse_option
from holdfast.search import HOLDS, VIOLATED
from holdfast.search.advise.combination import Asked
from holdfast.search.advise.losses import Loss
from holdfast.search.advise.scenarios import outcome_of
from holdfast.search.advise.searches import verdict_of
from holdfast.search.compare import Contender, Price, price
from holdfast.search.limits import Limits

Change = tuple[str, str]

_LAG_MS: Final = "1500"
"""replica.lag.time.max.ms of a trial: small, so that a trial can be short."""
_ALTERNATIVES: Final = (
    ("idempotence", "on"),
    ("acks", "all"),
    ("unclean", "off"),
    ("commit", "manual"),
    ("sink", "idempotent"),
    ("reads", "leader-only"),
)
"""Changes to try before those that cost writes or flushes."""
_KAFKA: Final = {
    "idempotence": "enable.idempotence=true",
    "acks": "acks=all",
    "unclean": "unclean.leader.election.enable=false",
    "commit": "enable.auto.commit=false, commit after the work",
    "sink": "a sink in which doing the work twice does not show",
    "reads": "no replica.selector.class",
    "flush": "flush.messages=1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change that removes a line, and what it costs."""

    setting: str
    value: str
    before: Price
    after: Price

    @property
    def setting_text(self) -> str:
        """The change as a Kafka setting."""
        return setting_text((self.setting, self.value))

    def to_dict(self) -> dict[str, Any]:
        """With stable keys."""
        return {
            "setting": self.setting,
            "value": self.value,
            "told": self.setting_text,
            "price": {"before": asdict(self.before), "after": asdict(self.after)},
        }


def setting_text(change: Change) -> str:
    """A change as a Kafka setting."""
    key, value = change
    return _KAFKA.get(key, f"{key.replace('_', '.')}={value}")


def contender_of(asked: Asked) -> Contender:
    """The contender that trials measure."""
    settings, rules = build({"replica_lag_time_max_ms": _LAG_MS, **asked.of_logs}, asked.replicas)
    return Contender(
        name="asked",
        settings=settings,
        rules=rules,
        acks=parse_option("acks", asked.options["acks"]),
        idempotent=parse_option("idempotence", asked.options["idempotence"]),
    )


def changes(asked: Asked) -> Iterator[Change]:
    """Changes that may help, those that are cheap for writers first."""
    for key, value in _ALTERNATIVES:
        if key != "idempotence" or asked.options["acks"] == "all":
            yield key, value
    yield "flush", "every-append"
    for minimum in range(asked.needed + 1, asked.replicas + 1):
        yield "min_insync_replicas", str(minimum)


class Safer:
    """Finds remedies, and measures each price once."""

    def __init__(self, asked: Asked, limits: Callable[[], Limits]) -> None:
        self._asked = asked
        self._limits = limits
        self._prices: dict[tuple[str, str], Price] = {}

    def price(self, key: str = "", value: str = "") -> Price:
        """The price with one change, or of the combination as given."""
        if (key, value) not in self._prices:
            asked = self._asked.changed(key, value) if key else self._asked
            self._prices[key, value] = price(contender_of(asked), asked.replicas)
        return self._prices[key, value]

    def changes_for(self, loss: Loss) -> dict[Change, str]:
        """Every single change that helps, or for which a limit was reached, with its verdict."""
        tried = {
            (key, value): self._verdict(loss, key, value)
            for key, value in changes(self._asked)
            if self._asked.options.get(key) != value
        }
        return {change: verdict for change, verdict in tried.items() if verdict != VIOLATED}

    def remedy(self, change: Change) -> Remedy:
        """A change with its price."""
        key, value = change
        return Remedy(setting=key, value=value, before=self.price(), after=self.price(key, value))

    def _verdict(self, loss: Loss, key: str, value: str) -> str:
        changed = self._asked.changed(key, value)
        if loss.scenario is not None:
            ends_well = outcome_of(loss.scenario, changed) not in (None, loss.outcome)
            return HOLDS if ends_well else VIOLATED
        if changed.of_logs == self._asked.of_logs:
            return VIOLATED
        return verdict_of(changed, loss.kinds, self._limits)
