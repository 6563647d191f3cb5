"""The tables of `holdfast topics`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from holdfast.cli.tables import Row, show


def show_list(topics: Iterable[dict[str, Any]]) -> None:
    """One row per topic."""
    columns = ("partitions", "replicas", "under-replicated", "offline")
    keys = ("partitions", "replication_factor", "under_replicated", "offline")
    rows = [(topic["topic"], *(topic[key] for key in keys)) for topic in topics]
    show(("topic", *columns), rows, numbers=columns)


def show_descriptions(topics: Iterable[dict[str, Any]]) -> None:
    """A head and a table per topic; one row per replica."""
    for number, topic in enumerate(topics):
        if number:
            click.echo()
        config = "".join(f" {name}={value}" for name, value in topic["config"].items())
        identity = "" if topic["topic_id"] is None else f", id {topic['topic_id']}"
        count = len(topic["partitions"])
        click.echo(f"{topic['topic']}: {count} partition{'s' * (count != 1)}{identity}{config}")
        show(
            ("partition", "leader", "epoch", "isr", "elr", "replica", "start", "hw", "leo"),
            _rows(topic["partitions"]),
            numbers=("partition", "start", "hw", "leo"),
        )


def _rows(partitions: Iterable[dict[str, Any]]) -> Iterator[Row]:
    for partition in partitions:
        first: Row = (
            partition["partition"],
            "none" if partition["leader"] is None else partition["leader"],
            partition["leader_epoch"],
            partition["isr"],
            partition["elr"],
        )
        for replica in partition["replicas"]:
            keys = ("broker", "log_start_offset", "high_watermark", "log_end_offset")
            yield (*first, *(replica[key] for key in keys))
            first = ("",) * len(first)
