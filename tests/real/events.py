"""Reads the trace events of one scenario from the brokers' trace files."""

from __future__ import annotations

from typing import Any

from holdfast.cluster.timeline import read_events
from tests.real.stage import Stage


class Events:
    """Events of the scenario's partition, in order of time."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def read(self) -> list[dict[str, Any]]:
        self._stage.cluster.flush_traces()
        paths = (self._stage.cluster.data_dir / "traces").glob("broker-*.trace")
        name = f"{self._stage.topic}-0"
        return [event for event in read_events(paths) if event["p"] == name]

    def all(self, name: str, kind: str, **numbers: object) -> list[dict[str, Any]]:
        """A broker's events of a kind with these numbers, so far."""
        broker = self._stage.broker(name)
        return [
            event
            for event in self.read()
            if (event["b"], event["k"]) == (broker, kind)
            and all(event[key] == value for key, value in numbers.items())
        ]

    def first(self, name: str, kind: str, **numbers: object) -> dict[str, Any]:
        """The first such event; there must be one."""
        what = f"a word of {name} about {kind} {numbers}"
        self._stage.until(lambda: self.all(name, kind, **numbers), what)
        return self.all(name, kind, **numbers)[0]

    def moment(self, name: str, kind: str, **numbers: object) -> tuple[int, int]:
        """The time of the first such event, by one clock for all brokers."""
        event = self.first(name, kind, **numbers)
        return event["t"], event["ns"]
