"""Counts requests, their bytes and their times; only a broker that serves metrics does this.

Kafka distinguishes the fetches of followers from those of consumers, and so do we. The number of
counts is bounded: clients choose only among the APIs and versions that the broker serves.
"""

from __future__ import annotations

from bisect import bisect_left
from time import perf_counter
from typing import Final

from holdfast.broker.histogram import REQUEST_BOUNDS_S, Histogram
from holdfast.broker.network.calls import Call
from holdfast.protocol.messages.fetch import FetchRequest

FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"


class RequestCount:
    """The answered requests of one API and version."""

    __slots__ = ("bytes_in", "bytes_out", "request", "times", "version")

    times: Histogram
    """From a decoded request to its answer."""

    def __init__(self, request: str, version: int) -> None:
        self.request = request
        self.version = version
        self.times = Histogram(REQUEST_BOUNDS_S)
        self.bytes_in = self.bytes_out = 0

    def answered(self, call: Call) -> None:
        """A request has its answer. This is `Histogram.observe` without the call, for speed."""
        seconds, times = perf_counter() - call.began_s, self.times
        times.counts[bisect_left(REQUEST_BOUNDS_S, seconds)] += 1
        times.total += seconds
        self.bytes_in += call.size
        self.bytes_out += call.answer_size


class RequestCounts:
    """The counts of all requests."""

    def __init__(self) -> None:
        self._counts: dict[int, RequestCount] = {}

    def of(self, call: Call) -> RequestCount:
        """The count of requests like this one."""
        is_peer = call.connection.broker is not None
        key = (call.api.key << 16 | call.version) << 1 | is_peer  # Cheaper to hash than a tuple.
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = RequestCount(_name(call, is_peer=is_peer), call.version)
        return count

    def all(self) -> list[RequestCount]:
        """One for each request and version that clients, and one that other brokers sent."""
        return list(self._counts.values())


def _name(call: Call, *, is_peer: bool) -> str:
    if call.api.key != FetchRequest.API_KEY:
        return call.api.name
    return FETCH_FOLLOWER if is_peer else FETCH_CONSUMER
