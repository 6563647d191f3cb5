"""Observes the cluster in two threads: its state every half second, its trace five times a second.

Every observation becomes items of the hub. A page may have a partition open: then the picture of
its lanes is kept too, for as long as somebody asks for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from holdfast.cluster.client.client import Address
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.timeline import INTERNAL
from holdfast.lab.render.narrate import sentence
from holdfast.web.console.event_list import LISTED, EventList
from holdfast.web.console.hub import Hub
from holdfast.web.console.live_lanes import LiveWorld, drawn, observed
from holdfast.web.console.reading import owned_reader
from holdfast.web.console.reading.kafka_reader import KafkaReader
from holdfast.web.console.reading.observation import OFFLINE, BrokerFacts, Observation
from holdfast.web.console.reading.trace_ring import Kept, TraceRing, event_of
from holdfast.web.console.replica_table import replica_table
from holdfast.web.console.rows import PREFIXES, Traffic, rows_of

PAUSE_S: Final = 0.5
TRACE_PAUSE_S: Final = 0.2
SHARE: Final = 2
"""An observation that takes long is followed by a pause of so many times its duration."""
FIRST_EVENTS: Final = 500
"""The events with which a picture begins; what is older only restores the state."""
WATCH_S: Final = 10.0
"""How long a picture is kept without a reader."""
Listener = Callable[[Observation], None]


class Watched:
    """A partition whose lanes a page shows."""

    def __init__(self, world: LiveWorld | None) -> None:
        self.world = world
        self.asked = time.monotonic()
        self.picture: dict[str, Any] | None = None
        self.version = 0
        self.is_stale = world is not None
        """Without a trace, the next observation asks for the leader epochs before it is drawn."""


def keep_what_was_known(seen: Observation, before: Observation) -> None:
    """No broker answers: the last state is shown, and nobody leads."""
    seen.is_holdfast, seen.is_owned = before.is_holdfast, before.is_owned
    seen.topics, seen.groups = before.topics, before.groups
    for broker, facts in before.brokers.items():
        seen.brokers.setdefault(broker, replace(facts, state=OFFLINE, is_controller=False))
    for name, partition in before.partitions.items():
        leads = partition.leader in seen.brokers and seen.brokers[partition.leader].is_up
        leader = partition.leader if leads else -1
        seen.partitions.setdefault(name, replace(partition, leader=leader))


def remember_the_dead(seen: Observation, before: Observation) -> None:
    """A broker that does not answer keeps the numbers that it last reported."""
    for broker in {one for partition in seen.partitions.values() for one in partition.replicas}:
        if broker not in seen.brokers:
            known_broker = before.brokers.get(broker)
            address = known_broker.address if known_broker else ""
            seen.brokers[broker] = BrokerFacts(broker, address, OFFLINE)
    seen.brokers = dict(sorted(seen.brokers.items()))
    for name, partition in seen.partitions.items():
        known = before.partitions.get(name)
        for broker in partition.replicas if known else ():
            if broker not in partition.copies and known and broker in known.copies:
                partition.copies[broker] = known.copies[broker]


class Watcher:
    """One cluster. `folder` is its data directory if `holdfast up` runs it here."""

    def __init__(self, bootstrap: Sequence[Address], folder: Path | None, hub: Hub) -> None:
        self.folder = folder
        self.bootstrap = ",".join(f"{host}:{port}" for host, port in bootstrap)
        self.hub = hub
        self.seen = Observation()
        self.listeners: list[Listener] = []
        self.ring = TraceRing(folder) if folder and owned_reader.has_trace(folder) else None
        self._reader = KafkaReader(bootstrap)
        self._traffic = Traffic()
        self._watched: dict[str, Watched] = {}
        self._events = EventList()
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._observe_on, name="console-observer")]
        if self.ring is not None:
            self._threads.append(threading.Thread(target=self._follow_on, name="console-trace"))

    def start(self) -> None:
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self._reader.close()

    # The observer.

    def _observe_on(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            began = time.monotonic()
            self.observe()
            pause = max(PAUSE_S, SHARE * (time.monotonic() - began))

    def observe(self) -> None:
        """One observation, merged into the hub."""
        try:
            avoid = owned_reader.silent_addresses(self.folder) if self.folder else ()
            seen = self._reader.read(avoid)
            if self.folder:
                owned_reader.add_status(seen, self.folder)
            if self.ring is None:
                self._reader.add_epochs(seen, list(self._watched))
        except ClusterError as error:
            seen = Observation(problem=error.message)
        if seen.problem:
            keep_what_was_known(seen, self.seen)
        remember_the_dead(seen, self.seen)
        self._traffic.count(seen, time.monotonic())
        self.seen = seen
        more = {"traced": self.ring is not None, "now": round(time.time() * 1000)}
        self.hub.put(rows_of(seen, self._traffic, more), PREFIXES)
        for listener in self.listeners:
            listener(seen)
        with self._lock:
            self._forget_unwatched()
            for one in self._watched.values():
                one.is_stale = True

    def _forget_unwatched(self) -> None:
        for name, one in list(self._watched.items()):
            if time.monotonic() - one.asked > WATCH_S:
                del self._watched[name]

    # The trace.

    def _follow_on(self) -> None:
        while not self._ended.wait(TRACE_PAUSE_S):
            self.follow()

    def follow(self) -> None:
        """Take what the trace has new."""
        assert self.ring is not None
        with self._lock:
            new = self.ring.poll()
            for name, one in self._watched.items():
                if one.world is not None:
                    events = [event_of(kept) for kept in new if kept.partition in ("", name)]
                    one.world.take([event for event in events if event is not None])
                    one.is_stale = one.is_stale or bool(events)
        self._list(new)

    def _list(self, new: Sequence[Kept]) -> None:
        listed = [one for one in new if one.kind in LISTED]
        for kept in listed:
            if not kept.partition.startswith(INTERNAL) and (event := event_of(kept)):
                self._events.add(kept.t, kept.partition, sentence(event, {}))
        if listed:
            self.hub.put({"events": self._events.newest()})

    # The lanes.

    def lanes(self, name: str, version: int) -> tuple[int, dict[str, Any] | None]:
        """The picture of a partition's lanes, or None if it is still that of this version."""
        with self._lock:
            partition = self.seen.partitions.get(name)
            if partition is None:
                return 0, None
            if name not in self._watched:
                world = (
                    LiveWorld(self.ring.replay(name, most=FIRST_EVENTS)[0]) if self.ring else None
                )
                self._watched[name] = Watched(world)
            one = self._watched[name]
            one.asked = time.monotonic()
            if one.is_stale:
                traced = one.world.snapshot() if one.world else None
                snapshot = observed(partition, self.seen, traced)
                picture = {
                    "partition": name,
                    "said": one.world.sentence if one.world else "",
                    "table": replica_table(partition, self.seen, snapshot),
                    **drawn(snapshot),
                }
                one.is_stale = False
                if picture != one.picture:
                    one.picture, one.version = picture, one.version + 1
            return (one.version, None) if one.version == version else (one.version, one.picture)

    def replay_lock(self) -> threading.RLock:
        """Held by a reader of the ring: the trace thread changes it."""
        return self._lock
