"""The console's updates: merged, in bounded memory, a full snapshot where differences are gone."""

from __future__ import annotations

import json
from typing import Any

from holdfast.web.console.hub import MOST_REMOVED, Hub, Update


def parsed(update: Update) -> Any:
    return json.loads(update.to_json())


def test_the_first_update_is_a_full_snapshot() -> None:
    hub = Hub()
    hub.put({"broker/1": {"state": "running"}, "traffic": [1, 2]})
    assert parsed(hub.since(0)) == {
        "full": True,
        "items": {"broker/1": {"state": "running"}, "traffic": [1, 2]},
        "removed": [],
    }


def test_later_updates_hold_what_changed_and_each_item_once() -> None:
    hub = Hub()
    hub.put({"a": 1, "b": 1})
    seen = hub.since(0).version
    for number in range(2, 50):
        hub.put({"a": number, "b": 1})
    assert parsed(hub.since(seen)) == {"full": False, "items": {"a": 49}, "removed": []}
    assert hub.since(hub.since(seen).version).is_empty


def test_an_item_that_is_gone_is_removed_unless_it_has_another_prefix() -> None:
    hub = Hub()
    hub.put({"broker/1": 1, "broker/2": 2, "action/1": 3})
    seen = hub.since(0).version
    hub.put({"broker/1": 1}, ("broker/",))
    assert parsed(hub.since(seen)) == {"full": False, "items": {}, "removed": ["broker/2"]}
    hub.put({"broker/2": 4})
    assert parsed(hub.since(seen)) == {"full": False, "items": {"broker/2": 4}, "removed": []}


def test_a_reader_older_than_the_removals_that_are_remembered_gets_a_snapshot() -> None:
    hub = Hub()
    hub.put({"a": 1})
    seen = hub.since(0).version
    for number in range(MOST_REMOVED + 10):
        hub.put({f"group/{number}": 1}, ("group/",))
    assert len(hub._removed) == MOST_REMOVED
    update = hub.since(seen)
    assert update.is_full
    assert sorted(update.items) == ["a", f"group/{MOST_REMOVED + 9}"]
