"""Metrics of topics and requests: what comes in, what goes out, how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final

from holdfast.broker.histogram import REQUEST_BOUNDS_S, Histogram
from holdfast.broker.metrics.definition import Metric, Samples, Scrape, Summary, Value, one
from holdfast.broker.network.request_counts import RequestCount

MS: Final = 1000


def _traffic(name: str, field: str, text: str) -> Metric:
    """Without the label for all topics together, and with it for each one, as in Kafka."""
    value: Callable[[object], int] = attrgetter(field)

    def samples(scrape: Scrape) -> Samples:
        yield (), value(scrape.traffic)
        for topic, traffic in scrape.topics.items():
            yield (topic,), value(traffic)

    full_name = f"kafka_server_brokertopicmetrics_{name}_total"
    return Metric(full_name, "counter", text, ("topic",), samples)


def _requests(
    name: str, kind: str, text: str, value: Callable[[list[RequestCount]], Value]
) -> Metric:
    """A metric of each request, whatever its version."""

    def samples(scrape: Scrape) -> Samples:
        for request, counts in scrape.requests.items():
            yield (request,), value(counts)

    return Metric(name, kind, text, ("request",), samples)


def _by_version(scrape: Scrape) -> Samples:
    for counts in scrape.requests.values():
        numbers: dict[int, int] = {}
        for each in counts:
            numbers[each.version] = numbers.get(each.version, 0) + each.times.count
        for version, number in numbers.items():
            yield (counts[0].request, str(version)), number


def _times(counts: list[RequestCount]) -> Histogram:
    total = Histogram(REQUEST_BOUNDS_S)
    for each in counts:
        total.add(each.times)
    return total


def _summary(counts: list[RequestCount], total: float) -> Summary:
    return Summary(sum(each.times.count for each in counts), total)


def _connections(scrape: Scrape) -> Iterator[tuple[tuple[str, str], int]]:
    listener = scrape.parts.listener
    yield (listener.name, "0"), len(listener.connections)


TOPICS: Final = (
    _traffic("messagesin", "messages_in", "Records that producers appended."),
    _traffic("bytesin", "bytes_in", "Bytes of batches that producers appended."),
    _traffic("bytesout", "bytes_out", "Bytes of batches sent to consumers."),
    _traffic("replicationbytesin", "replication_bytes_in", "Bytes of batches copied from leaders."),
    _traffic("replicationbytesout", "replication_bytes_out", "Bytes of batches sent to followers."),
    _traffic(
        "totalproducerequests",
        "produces",
        "Answered Produce requests, counted once for each partition on this broker.",
    ),
    _traffic("failedproducerequests", "failed_produces", "Those of them with an error."),
    _traffic(
        "totalfetchrequests",
        "fetches",
        "Answers to fetches, counted once for each partition that was read.",
    ),
    _traffic("failedfetchrequests", "failed_fetches", "Parts of such answers with an error."),
)

REQUESTS: Final = (
    Metric(
        "kafka_network_requestmetrics_requests_total",
        "counter",
        "Answered requests. Fetches are FetchConsumer or FetchFollower.",
        ("request", "version"),
        _by_version,
    ),
    _requests(
        "kafka_network_requestmetrics_totaltimems",
        "summary",
        "Milliseconds from a decoded request to its answer.",
        lambda counts: _summary(counts, MS * sum(each.times.total for each in counts)),
    ),
    _requests(
        "kafka_network_requestmetrics_requestbytes",
        "summary",
        "Bytes of requests.",
        lambda counts: _summary(counts, sum(each.bytes_in for each in counts)),
    ),
    _requests(
        "holdfast_response_bytes",
        "summary",
        "Bytes of responses.",
        lambda counts: _summary(counts, sum(each.bytes_out for each in counts)),
    ),
    _requests(
        "holdfast_request_seconds",
        "histogram",
        "Seconds from a decoded request to its answer.",
        _times,
    ),
    Metric(
        "kafka_server_socketservermetrics_connection_count",
        "gauge",
        "Open connections, from clients and other brokers.",
        ("listener", "networkProcessor"),
        _connections,
    ),
    Metric(
        "holdfast_unsent_bytes",
        "gauge",
        "Bytes of responses that clients have not received, on connections that have many.",
        (),
        lambda scrape: one(scrape.parts.listener.unsent_bytes),
    ),
)
