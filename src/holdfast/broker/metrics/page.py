"""The page of all metrics in Prometheus' text format, in pieces.

A piece has so few samples that the event loop can serve requests between two of them. All samples
of a metric follow each other, as the format demands; only the first piece has HELP and TYPE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from holdfast.broker.histogram import Histogram
from holdfast.broker.metrics.cluster_metrics import BROKER, CONTROLLER, COORDINATORS
from holdfast.broker.metrics.definition import Labels, Metric, Scrape, Summary, Value
from holdfast.broker.metrics.replica_metrics import MANAGER, REPLICAS
from holdfast.broker.metrics.traffic_metrics import REQUESTS, TOPICS

METRICS: Final = (*BROKER, *CONTROLLER, *MANAGER, *COORDINATORS, *REQUESTS, *TOPICS, *REPLICAS)
SAMPLES: Final = 200
"""The most samples of a piece: one to two milliseconds."""
HEAD_LINES: Final = 2
"""HELP and TYPE."""


class _Piece(Collector):
    """Some samples of one metric, for `generate_latest`."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> Iterator[Family]:
        yield self._family


def page(scrape: Scrape) -> Iterator[bytes]:
    """The pieces of the page. Between two of them anything may happen to the broker."""
    for metric in METRICS:
        yield from pieces(metric, scrape)
    yield generate_latest(ProcessCollector(registry=None))


def pieces(metric: Metric, scrape: Scrape) -> Iterator[bytes]:
    """The pieces of one metric: at least one, with HELP and TYPE."""
    samples = iter(metric.read(scrape))
    some = list(islice(samples, SAMPLES))
    yield _text(metric, some)
    while some := list(islice(samples, SAMPLES)):
        yield _text(metric, some).split(b"\n", HEAD_LINES)[HEAD_LINES]


def _text(metric: Metric, samples: Sequence[tuple[Labels, Value]]) -> bytes:
    return generate_latest(_Piece(_family(metric, samples)))


def _family(metric: Metric, samples: Sequence[tuple[Labels, Value]]) -> Family:
    name, kind, text, labels, _ = metric
    if kind == "histogram":
        histogram = HistogramMetricFamily(name, text, labels=labels)
        for values, value in samples:
            assert isinstance(value, Histogram)
            histogram.add_metric(values, _buckets(value), value.total)
        return histogram
    if kind == "summary":
        summary = SummaryMetricFamily(name, text, labels=labels)
        for values, value in samples:
            assert isinstance(value, Summary)
            summary.add_metric(values, value.number, value.total)
        return summary
    family = (CounterMetricFamily if kind == "counter" else GaugeMetricFamily)(
        name, text, labels=labels
    )
    for values, value in samples:
        assert isinstance(value, float | int)
        family.add_metric(values, value)
    return family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Each bucket with its upper bound; it includes the smaller ones."""
    bounds = (*map(str, histogram.bounds), "+Inf")
    return list(zip(bounds, accumulate(histogram.counts), strict=True))
