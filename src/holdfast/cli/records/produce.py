"""`holdfast produce`: lines of stdin, or files, into a topic."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click

from holdfast.cli.asking import CODES, connected, say
from holdfast.cli.errors import BadInput
from holdfast.cli.options import (
    Asked,
    cluster_options,
    json_option,
    settings_from,
    topic_option,
)
from holdfast.cli.records.escapes import unescaped
from holdfast.cli.records.input import Input, files, lines, record

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@click.command(epilog=CODES)
@topic_option(required=True)
@click.option(
    "-p", "--partition", type=click.IntRange(0), help="[default: by the key, as the client does]"
)
@click.option("-K", "--key-delimiter", help="Lines are KEY, this, VALUE.")
@click.option("-k", "--key", help="The key of every record.")
@click.option(
    *("-H", "--header", "headers"), multiple=True, metavar="NAME=VALUE", help="On every record."
)
@click.option(
    "-D", "--delimiter", default="\\n", show_default=True, help="Between records. \\xHH is a byte."
)
@click.option("-l", "--lines", "by_lines", is_flag=True, help="FILEs hold lines, not one record.")
@click.option("-Z", "--null", is_flag=True, help="An empty value or key is a null (a tombstone).")
@click.option("-z", "--compression", type=click.Choice(CODECS), help="[default: none]")
@click.option("-c", "--count", type=click.IntRange(1), help="Exit after this many records.")
@click.option(
    *("-X", "--command-property", "properties"),
    multiple=True,
    metavar="NAME=VALUE",
    help="A property of the client (librdkafka), such as message.timeout.ms=5000.",
)
@click.argument(
    "paths",
    metavar="[FILE]...",
    nargs=-1,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@cluster_options
@json_option
def produce(
    topic: str,
    partition: int | None,
    headers: Sequence[str],
    count: int | None,
    paths: Sequence[Path],
    asked: Asked,
    as_json: bool,
    **given: Any,
) -> None:
    """Send each line of stdin, or each FILE, as one record; wait for all acknowledgements.

    acks=all and idempotent, unless -X says otherwise. With --json, one line per acknowledged record
    on stdout. A record that is not acknowledged is named on stderr, and the exit code is 1.
    """
    records = _records(paths, given)
    settings = {} if given["compression"] is None else {"compression.type": given["compression"]}
    settings |= settings_from("-X", given["properties"])
    with connected(asked, settings) as connection:
        from holdfast.cli.records.sender import Sender

        sender = Sender(
            connection,
            topic,
            partition=partition,
            headers=_headers(headers),
            report=_print if as_json else None,
        )
        sender.send(islice(records, count))
    say(f"{sender.acknowledged} records to {topic}")


def _records(paths: Sequence[Path], given: Mapping[str, Any]) -> Iterator[Input]:
    """BadInput before the first one is read."""
    delimiter, key, key_delimiter = given["delimiter"], given["key"], given["key_delimiter"]
    if not delimiter or key_delimiter == "":
        raise BadInput("an empty delimiter divides nothing", hint="leave out -D or -K")
    if key is not None and key_delimiter is not None:
        raise BadInput("-k and -K both decide the key", hint="leave one of them out")
    is_whole = paths and not given["by_lines"]
    pieces = files(paths) if is_whole else lines(paths, unescaped(delimiter))
    return _parted(pieces, key, key_delimiter, is_null=given["null"])


def _parted(
    pieces: Iterable[tuple[bytes, str]], key: str | None, delimiter: str | None, *, is_null: bool
) -> Iterator[Input]:
    between = None if delimiter is None else unescaped(delimiter)
    for piece, place in pieces:
        one = record(piece, place, between, empty_is_null=is_null)
        yield one if key is None else one._replace(key=key.encode())


def _headers(given: Iterable[str]) -> list[tuple[str, str | bytes | None]]:
    """As in kcat, a header without = has no value."""
    parted = [one.partition("=") for one in given]
    return [(name, value.encode() if equals else None) for name, equals, value in parted]


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
