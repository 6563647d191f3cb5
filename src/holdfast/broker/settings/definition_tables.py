"""Every setting of Kafka, and our own, from the tables beside this module.

A table is one file per area, one line per setting, columns between bars. Names and defaults are
those of Kafka 4.3.1, except `listeners`; settings that 4.x no longer has (above all ZooKeeper's)
are as in 3.9.1. An empty default is the empty string; `null` is none; `required` must be given in
Kafka. The column `test` names the test that observes what the setting does to a running broker:
`settings/logs::segment_bytes` is `test_segment_bytes` in tests/settings/test_logs.py. A setting
without one (`-`) is unsupported: it is accepted with a warning.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from types import MappingProxyType

from holdfast.broker.settings.setting import Allowed, Change, Kind, Setting

AREAS = (
    "holdfast",
    "listeners",
    "replication",
    "controller",
    "topics",
    "log_storage",
    "topic_level",
    "groups",
    "new_groups",
    "transactions",
    "security",
    "quotas_metrics",
    "tiered_storage",
)
_COLUMNS = "name | type | default | allowed | change | importance | test | meaning"
_ELSEWHERE = ("listener.name.", "rsm.config.", "rlmm.config.")
"""Prefixes under which Kafka accepts any name: settings of a listener or a tiering plug-in."""
FIXED = ("listeners",)
"""Settings that only Kafka can change at run time."""


def _read(area: str) -> Iterator[Setting]:
    text = (
        files("holdfast.broker.settings").joinpath("definitions", f"{area}.txt").read_text("utf-8")
    )
    _, heading, *lines = text.splitlines()
    assert [cell.strip() for cell in heading.split("|")] == _COLUMNS.split(" | ")
    for line in lines:
        name, kind, default, allowed, change, importance, test, meaning = (
            cell.strip() for cell in line.split("|", 7)
        )
        assert test, name
        yield Setting(
            name=name,
            kind=Kind[kind.upper()],
            default=None if default in ("null", "required") else default,
            is_required=default == "required",
            allowed=Allowed.parse(allowed),
            change=Change(change),
            importance=importance,
            test=None if test == "-" else test,
            meaning=meaning,
        )


_ALL = tuple(setting for area in AREAS for setting in _read(area))
BROKER: Mapping[str, Setting] = MappingProxyType(
    {setting.name: setting for setting in _ALL if setting.change is not Change.TOPIC}
)
TOPIC: Mapping[str, Setting] = MappingProxyType(
    {setting.name: setting for setting in _ALL if setting.change is Change.TOPIC}
)


def is_of_a_plugin(name: str) -> bool:
    """Whether only a plug-in or a listener defines this name."""
    return name.startswith(_ELSEWHERE)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar."""
    found = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.75)
    return found[0] if found else None
