"""The parts of an ingest that need neither Spark nor brokers."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cluster import ClusterError
from holdfast.cluster.client.client import addresses
from holdfast.pipeline import PipelineError
from holdfast.pipeline.ingest import Topics
from holdfast.pipeline.ingest.missing_offsets import Place, error_of_span
from holdfast.pipeline.spark.failures import causes, readable_failure
from holdfast.pipeline.spark.progress import Reading, after


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("flights", ("subscribe", "flights")),
        ("a.b,c_d, e-f,a.b", ("subscribe", "a.b,c_d,e-f")),
        ("flights.*", ("subscribePattern", "flights.*")),
        ("a|b", ("subscribePattern", "a|b")),
    ],
)
def test_what_no_topic_can_be_called_is_a_pattern(text: str, option: tuple[str, str]) -> None:
    assert Topics.parsed(text).option == option


def test_a_pattern_must_be_one() -> None:
    with pytest.raises(PipelineError, match="neither topics with commas nor a regular expression"):
        Topics.parsed("flights(")


def test_topics_may_be_added_and_not_left_out() -> None:
    one, two = Topics.parsed("a"), Topics.parsed("a,b")
    assert two.hold_all_of(one)
    assert not one.hold_all_of(two)
    assert not Topics.parsed("a.*").hold_all_of(one)


def test_addresses_are_host_and_port() -> None:
    assert addresses("a:1, [::1]:2") == [("a", 1), ("::1", 2)]
    for wrong in ("a", "a:", ":1", "a:0", "a:65536", "a:1,"):
        with pytest.raises(ClusterError, match="is not HOST:PORT"):
            addresses(wrong)


def test_the_log_says_what_took_the_offsets() -> None:
    place = Place("flights", 3, 20)
    retention, truncated, grown = (
        error_of_span(place, *span) for span in ((25, 40), (0, 15), (0, 40))
    )
    assert "flights-3: offsets [20, 25) vanished" in retention.message
    assert "retention" in retention.message
    assert (
        "flights-3: offsets [15, 20) are in the table and no longer in the log" in truncated.message
    )
    assert "audit" in str(truncated.hint)
    assert "it was truncated and has grown again" in grown.message


def progress(rows: int, **source: Any) -> dict[str, Any]:
    return {"numInputRows": rows, "processedRowsPerSecond": 5.0, "sources": [source]}


def test_a_reading_adds_up_batches_and_counts_the_lag() -> None:
    first = progress(
        7,
        startOffset=None,
        endOffset={"t": {"0": 4, "1": 3}},
        latestOffset={"t": {"0": 10, "1": 3}},
    )
    second = progress(
        6,
        startOffset={"t": {"0": 4, "1": 3}},
        endOffset={"t": {"0": 10, "1": 3}},
        latestOffset={"t": {"0": 10, "1": 3}},
    )
    reading = after(Reading(), first)
    assert (reading.rows, reading.batches, reading.read, reading.behind) == (7, 1, 7, 6)
    reading = after(reading, second)
    assert (reading.rows, reading.batches, reading.read, reading.behind) == (13, 2, 13, 0)
    same = {"t": {"0": 10, "1": 3}}
    idle = progress(0, startOffset=same, endOffset=same, latestOffset={"t": {"0": 12, "1": 3}})
    assert after(reading, idle).batches == 2
    assert after(reading, idle).behind == 2


def test_a_python_traceback_is_shortened_to_its_last_line() -> None:
    text = "boom\nTraceback (most recent call last):\n  File x\n    y\nValueError: no\n"
    assert causes(RuntimeError(text))[-1].text == "ValueError: no"


def test_known_failures_get_a_hint() -> None:
    error = readable_failure(
        RuntimeError("java.lang.OutOfMemoryError: Java heap space"), "the ingest stopped"
    )
    assert error.message == "the ingest stopped: Spark ran out of memory"
    assert "spark.driver.memory" in str(error.hint)
    other = readable_failure(
        RuntimeError("first line\n\tat java.lang.Thread.run"), "the ingest stopped"
    )
    assert other.message == "the ingest stopped: first line"
