"""Explains missing offsets: which ones could not be read, and what probably removed them.

The connector names the partition. The present log shows more: if it begins above the position,
retention (or DeleteRecords) was faster than the ingest; if it ends below, it was truncated (an
unclean election, lost flushes) or the topic was recreated. A log that was truncated and has since
grown beyond the position looks complete to any reader. Only the audit finds that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from holdfast.cluster import Client, ClusterError
from holdfast.cluster.client.client import addresses
from holdfast.cluster.client.records import span_of
from holdfast.pipeline.ingest.options import Ingest
from holdfast.pipeline.spark.failures import Cause, StreamFailedError

SPAN_S: Final = 10.0
DATA_LOSS: Final = "KAFKA_DATA_LOSS"
EXPECTED: Final = ("prevOffset", "offset", "startOffset")
"""The connector's names of the position where it wanted to continue, by condition."""
GO_ON: Final = "--on-data-loss continue skips what is missing"


class Place(NamedTuple):
    topic: str
    partition: int
    offset: int
    """The next offset to read."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def vanished(asked: Ingest, chain: Sequence[Cause]) -> StreamFailedError | None:
    """None if the stream stopped for another reason."""
    for cause in chain:
        if cause.condition is not None and cause.condition.startswith(DATA_LOSS):
            return _report(asked, cause)
        if cause.condition is not None and "TRIGGER_AVAILABLENOW" in cause.condition:
            return _shrunk(cause)
    return None


def _report(asked: Ingest, cause: Cause) -> StreamFailedError:
    place = _place(cause)
    if place is None:  # whole partitions are gone, or one began late
        lines = [line for line in cause.text.splitlines() if line.strip()]
        words = cause.text.split("Reason:")[-1] if "Reason:" in cause.text else lines[-1]
        return StreamFailedError(
            f"offsets vanished before they were read: {words.strip()}",
            hint=f"was a topic deleted or recreated? {GO_ON}",
        )
    try:
        with Client(addresses(asked.bootstrap)) as client:
            first, end = span_of(client, place.topic, place.partition, SPAN_S)
    except ClusterError:
        return StreamFailedError(
            f"{place}: offsets from {place.offset} vanished before they were read", hint=GO_ON
        )
    return error_of_span(place, first, end)


def error_of_span(place: Place, first: int, end: int) -> StreamFailedError:
    """The error for a log that holds [first, end) now."""
    now = f"its log now holds [{first}, {end})"
    if place.offset < first:
        return StreamFailedError(
            f"{place}: offsets [{place.offset}, {first}) vanished before they were read; {now}; "
            "retention or DeleteRecords was quicker than this ingest",
            hint=f"raise retention.ms or retention.bytes, and run more often; {GO_ON}",
        )
    if place.offset > end:
        return StreamFailedError(
            f"{place}: offsets [{end}, {place.offset}) are in the table and no longer in the log; "
            f"{now}; it was truncated (an unclean election, unflushed records lost) or the topic "
            "was recreated",
            hint=f"'holdfast audit run' shows which records and why; {GO_ON}",
        )
    return StreamFailedError(
        f"{place}: offsets from {place.offset} could not be read, though {now}; "
        "it was truncated and has grown again, or is being truncated now",
        hint=f"start again; 'holdfast audit run' shows what became of them; {GO_ON}",
    )


def _place(cause: Cause) -> Place | None:
    name = cause.parameters.get("topicPartition", "")
    topic, dash, partition = name.rpartition("-")
    found = [cause.parameters[key] for key in EXPECTED if key in cause.parameters]
    if not dash or not partition.isdecimal() or not found or not found[0].isdecimal():
        return None
    return Place(topic, int(partition), int(found[0]))


def _shrunk(cause: Cause) -> StreamFailedError:
    return StreamFailedError(
        f"a log became shorter while it was read: {' '.join(cause.text.split())}",
        hint="start again; if it was an unclean election, 'holdfast audit run' shows what is gone",
    )
