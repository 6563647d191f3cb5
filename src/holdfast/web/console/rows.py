"""Turns an observation into the items that the page shows, and counts the traffic.

A partition's row is short, because a thousand of them may change together; its replicas are sent
only to a page that has the partition open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from holdfast.web.console.reading.observation import Observation, PartitionFacts

SAMPLES: Final = 180
PREFIXES: Final = ("broker/", "partition/", "topic/", "group/")
_ORDER: Final = ("offline", "below-min", "under-replicated", "healthy")


class Traffic:
    """Records per second, of each partition and of all."""

    def __init__(self) -> None:
        self._ends: dict[str, int] = {}
        self._at = 0.0
        self.rates: dict[str, float] = {}
        self.samples: deque[tuple[int, int]] = deque(maxlen=SAMPLES)
        """The whole cluster's rate, as (milliseconds, records per second)."""

    def count(self, seen: Observation, now: float) -> None:
        """Take the offsets of an observation; `now` in seconds."""
        ends = {name: one.end for name, one in seen.partitions.items() if one.end is not None}
        passed = now - self._at
        if self._ends and passed > 0:
            self.rates = {
                name: max(0, end - self._ends[name]) / passed
                for name, end in ends.items()
                if name in self._ends
            }
            self.samples.append((round(now * 1000), round(sum(self.rates.values()))))
        # A partition without a leader keeps its last end, or its return would look like traffic.
        self._ends = {name: ends.get(name, self._ends.get(name, 0)) for name in seen.partitions}
        self._at = now


def rows_of(seen: Observation, traffic: Traffic, more: Mapping[str, Any]) -> dict[str, Any]:
    """The items for the hub; `more` completes the item of the cluster."""
    items: dict[str, Any] = {
        f"partition/{name}": _partition(seen, one, traffic) for name, one in seen.partitions.items()
    }
    items.update({f"broker/{one}": _broker(seen, one) for one in seen.brokers})
    items.update(_topics(seen, traffic))
    items.update({f"group/{name}": _group(seen, name) for name in seen.groups})
    items["traffic"] = list(traffic.samples)
    items["cluster"] = {
        "id": seen.cluster_id,
        "kind": "Holdfast" if seen.is_holdfast else "Apache Kafka",
        "owned": seen.is_owned,
        "controller": seen.controller,
        "problem": seen.problem,
        **more,
    }
    return items


def _partition(seen: Observation, one: PartitionFacts, traffic: Traffic) -> list[Any]:
    """As a list, to keep a thousand of them small; state.js names the places."""
    return [
        one.topic,
        one.index,
        one.health(seen.topics.get(one.topic)),
        one.leader,
        one.leader_epoch,
        list(one.replicas),
        list(one.isr),
        None if one.eligible is None else list(one.eligible),
        one.start,
        one.end,
        round(traffic.rates.get(one.name, 0)),
    ]


def _broker(seen: Observation, broker: int) -> dict[str, Any]:
    facts = seen.brokers[broker]
    partitions = seen.partitions.values()
    return {
        "id": broker,
        "address": facts.address,
        "state": facts.state,
        "controller": broker == seen.controller,
        "epoch": facts.epoch,
        "faults": list(facts.faults),
        "bytes": facts.bytes,
        "leads": sum(one.leader == broker for one in partitions),
        "replicas": sum(broker in one.replicas for one in partitions),
        "out": sum(broker in one.replicas and broker not in one.isr for one in partitions),
    }


def _topics(seen: Observation, traffic: Traffic) -> dict[str, Any]:
    topics: dict[str, dict[str, Any]] = {}
    for one in seen.partitions.values():
        settings = seen.topics.get(one.topic)
        row = topics.setdefault(
            f"topic/{one.topic}",
            {
                "name": one.topic,
                "partitions": 0,
                "replicas": len(one.replicas),
                "health": "healthy",
                "records": 0,
                "rate": 0,
                "min_insync": settings.min_insync if settings else None,
                "unclean": settings.unclean if settings else None,
            },
        )
        row["partitions"] += 1
        row["health"] = min(row["health"], one.health(settings), key=_ORDER.index)
        row["records"] += (one.end or 0) - (one.start or 0)
        row["rate"] += round(traffic.rates.get(one.name, 0))
    return topics


def _group(seen: Observation, name: str) -> dict[str, Any]:
    group = seen.groups[name]
    worst = sorted(group.lags.items(), key=lambda one: -one[1])[:20]
    return {
        "id": name,
        "state": group.state,
        "members": group.members,
        "kind": group.kind or "classic",
        "coordinator": group.coordinator,
        "lag": sum(group.lags.values()),
        "partitions": len(group.lags),
        "worst": worst,
    }
