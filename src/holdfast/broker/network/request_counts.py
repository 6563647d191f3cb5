"""Counts requests, their bytes and their times; only a broker that serves metrics does this.

Kafka distinguishes the fetches of followers from those of consumers, and so do we. The number of
counts is bounded: clients choose only among the APIs and versions that the broker serves.
"""

from __future__ import annotations

from time import perf_counter
from typing import Final

from holdfast.broker.histogram import REQUEST_BOUNDS_S, Histogram
from holdfast.broker.network.calls import Call
from holdfast.protocol.messages.fetch import FetchRequest

FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"


class RequestCount:
    """The answered requests of one API and version."""

    __slots__ = ("bytes_in", "bytes_out", "local_s", "request", "times", "version")

    times: Histogram
    """From the arrival of a request to its answer."""
    local_s: float
    """The part of it until the handler returned; later a request only waits."""

    def __init__(self, request: str, version: int) -> None:
        self.request = request
        self.version = version
        self.times = Histogram(REQUEST_BOUNDS_S)
        self.local_s = 0.0
        self.bytes_in = self.bytes_out = 0

    def answered(self, call: Call) -> None:
        """A request has its answer."""
        self.times.observe(perf_counter() - call.began_s)
        self.bytes_in += call.size
        self.bytes_out += call.answer_size

    def handled(self, call: Call) -> None:
        """The handler has returned, with or without an answer."""
        self.local_s += perf_counter() - call.began_s


class RequestCounts:
    """The counts of all requests."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int, bool], RequestCount] = {}

    def begin(self, call: Call, began_s: float) -> None:
        """A request that arrived at this time was decoded."""
        is_peer = call.connection.broker is not None
        key = (call.api.key, call.version, is_peer)
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = RequestCount(_name(call, is_peer=is_peer), call.version)
        call.count, call.began_s = count, began_s

    def all(self) -> list[RequestCount]:
        """One for each request and version that clients, and one that other brokers sent."""
        return list(self._counts.values())


def _name(call: Call, *, is_peer: bool) -> str:
    if call.api.key != FetchRequest.API_KEY:
        return call.api.name
    return FETCH_FOLLOWER if is_peer else FETCH_CONSUMER
