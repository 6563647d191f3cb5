"""The page of metrics: its pieces, and the names of what it has."""

from __future__ import annotations

import re
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from holdfast.broker.histogram import Histogram
from holdfast.broker.metrics.definition import Metric, Summary
from holdfast.broker.metrics.page import METRICS, SAMPLES, pieces

NO_SCRAPE: Any = None


def text_of(kind: str, *samples: Any, labels: tuple[str, ...] = ()) -> str:
    metric = Metric(
        "a_total" if kind == "counter" else "a", kind, "Help.", labels, lambda _: samples
    )
    return b"".join(pieces(metric, NO_SCRAPE)).decode()


def test_a_large_metric_comes_in_pieces_with_one_head() -> None:
    count = 2 * SAMPLES + 1
    metric = Metric(
        "large", "gauge", "Help.", ("one",), lambda _: (((str(n),), n) for n in range(count))
    )
    made = list(pieces(metric, NO_SCRAPE))
    assert [piece.count(b"\nlarge{") for piece in made] == [SAMPLES, SAMPLES - 1, 0]
    [family] = text_string_to_metric_families(b"".join(made).decode())
    assert [(one.labels["one"], one.value) for one in family.samples] == [
        (str(n), n) for n in range(count)
    ]


def test_a_piece_is_made_only_when_it_is_asked_for() -> None:
    read: list[int] = []

    def samples(_: object) -> Any:
        for number in range(3 * SAMPLES):
            read.append(number)
            yield (str(number),), number

    made = pieces(Metric("large", "gauge", "Help.", ("one",), samples), NO_SCRAPE)
    next(made)
    assert len(read) == SAMPLES


def test_a_metric_without_samples_is_named() -> None:
    assert text_of("gauge") == "# HELP a Help.\n# TYPE a gauge\n"
    assert text_of("counter") == "# HELP a_total Help.\n# TYPE a_total counter\n"


def test_each_kind_is_written_as_its_type_demands() -> None:
    assert text_of("gauge", (('x"\n\\',), True), labels=("l",)).endswith('a{l="x\\"\\n\\\\"} 1.0\n')
    assert text_of("counter", ((), 7)).endswith("\na_total 7.0\n")
    assert text_of("summary", ((), Summary(2, 0.5))).endswith("\na_count 2.0\na_sum 0.5\n")
    histogram = Histogram((0.5, 1.0))
    for value in (0.5, 0.6, 7.0):
        histogram.observe(value)
    assert text_of("histogram", ((), histogram)).splitlines()[2:] == [
        'a_bucket{le="0.5"} 1.0',
        'a_bucket{le="1.0"} 2.0',
        'a_bucket{le="+Inf"} 3.0',
        "a_count 3.0",
        "a_sum 8.1",
    ]


def test_a_label_may_be_missing_for_the_total() -> None:
    text = text_of("counter", ((), 3), (("t",), 2), labels=("topic",))
    assert text.splitlines()[2:] == ["a_total 3.0", 'a_total{topic="t"} 2.0']


def test_the_names_follow_the_rules() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    for metric in METRICS:
        assert re.fullmatch(r"(kafka|holdfast)_[a-z_]+", metric.name), metric.name
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.kind in ("gauge", "counter", "summary", "histogram")
        assert metric.help.endswith("."), metric.name
