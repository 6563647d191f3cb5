"""`holdfast consume`: records of a topic on stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.asking import CODES, connected, say
from holdfast.cli.errors import BadInput
from holdfast.cli.options import Asked, cluster_options, settings_from, topic_option

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from holdfast.cli.records.format import Render
    from holdfast.cli.records.positions import Positions
    from holdfast.cluster.admin.connection import Connection

NULL: Final = b"NULL"


@click.command(epilog=CODES)
@topic_option(required=True)
@click.option(
    *("-p", "--partition", "partitions"),
    multiple=True,
    type=click.IntRange(0),
    help="Only this one.  [default: all]",
)
@click.option(
    *("-o", "--offset", "offsets"),
    multiple=True,
    metavar="POSITION",
    help="beginning, end, N, -N (before the end), s@TIME (from), e@TIME (until).  "
    "[default: beginning]",
)
@click.option("-c", "--count", type=click.IntRange(1), help="Exit after this many records.")
@click.option("-e", "--exit", "exits_at_end", is_flag=True, help="Exit at the end of the topic.")
@click.option(
    *("-G", "--group"),
    help="Read as a member of this group, from its offsets, and commit. -o is for a new group.",
)
@click.option("-f", "--format", "text", help=r"Such as '%t [%p] %o: %k=%s\n'.  [default: '%s\n']")
@click.option("-K", "--key-delimiter", help="Print the key and this before the value.")
@click.option("-D", "--delimiter", default="\\n", show_default=True, help="After each record.")
@click.option("-Z", "--null", is_flag=True, help="Print NULL for a null, and not nothing.")
@click.option(
    *("-J", "--json", "as_json"), is_flag=True, help="One JSON object per line, as kcat prints it."
)
@click.option(
    *("-X", "--command-property", "properties"),
    multiple=True,
    metavar="NAME=VALUE",
    help="A property of the client (librdkafka).",
)
@cluster_options
def consume(
    topic: str,
    partitions: Sequence[int],
    offsets: Sequence[str],
    count: int | None,
    group: str | None,
    asked: Asked,
    **given: Any,
) -> None:
    r"""Print the records of a topic, from its beginning, until Ctrl-C.

    In a format, \n, \t and \xHH are characters; %s is the value, %k the key (%S and %K their
    sizes, -1 for null), %t topic, %p partition, %o offset, %e leader epoch, %T timestamp,
    %h headers.
    """
    from holdfast.cli.records.positions import positions

    if group is not None and partitions:
        raise BadInput("a group decides who reads which partition", hint="leave out -p or -G")
    render = _render(given)
    wanted = positions(offsets)
    if group is not None and (wanted.offset is not None or wanted.start_ms or wanted.stop_ms):
        raise BadInput(
            "a group reads from its own offsets", hint="only -o beginning and -o end go with -G"
        )
    with connected(asked, settings_from("-X", given["properties"])) as connection:
        at_end = given["exits_at_end"]
        reading = _Reading(connection, topic, partitions, wanted, exits_at_end=at_end)
        try:
            _write(reading, reading.batches(group), render, count)
        finally:
            reading.close()


def _render(given: Mapping[str, Any]) -> Render:
    from holdfast.cli.records.format import as_json, renderer

    text, key_delimiter = given["text"], given["key_delimiter"]
    if text is not None and (given["as_json"] or key_delimiter is not None):
        raise BadInput("-f decides everything", hint="leave out -J and -K")
    if given["as_json"]:
        return as_json
    if text is None:
        key = "" if key_delimiter is None else f"%k{_literal(key_delimiter)}"
        text = f"{key}%s{_literal(given['delimiter'])}"
    return renderer(text, NULL if given["null"] else b"")


def _literal(text: str) -> str:
    return text.replace("%", "%%")


class _Reading:
    """A consumer and what it reads."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        partitions: Sequence[int],
        wanted: Positions,
        *,
        exits_at_end: bool,
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._partitions = _existing(connection, topic, partitions)
        self._wanted = wanted
        self._exits_at_end = exits_at_end
        self._consumer: Consumer | None = None
        self._commits = False

    def batches(self, group: str | None) -> Iterable[list[Message]]:
        """Records from the positions that were asked for, or from the group's offsets."""
        from holdfast.cli.records.consumer import consumer, read_group, read_spans, spans

        if group is None:
            self._consumer = consumer(self._connection, say, {}, None)
            wanted = spans(self._consumer, self._topic, self._partitions, self._wanted)
            return read_spans(self._consumer, self._topic, wanted, exits_at_end=self._exits_at_end)
        reset = {"auto.offset.reset": "latest" if self._wanted.at_end else "earliest"}
        self._consumer = consumer(self._connection, say, reset, group)
        self._commits = True
        return read_group(self._consumer, self._topic, exits_at_end=self._exits_at_end)

    def printed(self, records: Sequence[Message]) -> None:
        """A group does not read these again."""
        from holdfast.cli.records.consumer import store

        if self._commits:
            assert self._consumer is not None
            store(self._consumer, records)

    def close(self) -> None:
        """Leaves the group and commits."""
        if self._consumer is not None:
            self._consumer.close()


def _existing(connection: Connection, topic: str, wanted: Sequence[int]) -> list[int]:
    from holdfast.cluster.admin.errors import RefusedError
    from holdfast.cluster.admin.topics import known

    known(connection, [topic])
    partitions = connection.metadata().topics[topic].partitions
    for one in wanted:
        if one not in partitions:
            raise RefusedError(f"{topic} has no partition {one}: it has {len(partitions)}")
    return list(dict.fromkeys(wanted)) or sorted(partitions)


def _write(
    reading: _Reading, batches: Iterable[list[Message]], render: Render, count: int | None
) -> None:
    """Flushed per batch: a reader in a pipe sees a record when it arrives."""
    out, left = sys.stdout.buffer, count
    for batch in batches:
        records = batch if left is None else batch[:left]
        out.writelines(map(render, records))
        out.flush()
        reading.printed(records)
        if left is not None:
            left -= len(records)
            if not left:
                return
