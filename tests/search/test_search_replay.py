"""The ordinary world does what the search predicts for a path, for every kind of action."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from holdfast.search import HOLDS, LIMIT, Bounds, Question
from holdfast.search.event_effects import KINDS
from holdfast.search.explore import Explorer
from holdfast.search.limits import Limits
from holdfast.search.scenario.script import Script
from tests.search.naive_search import tidied, used_by, value_of_state, value_of_world

TRIED = 40
BOUNDS = {
    "any order": Bounds(elections=1, delays=99),
    "messages": Bounds(elections=1, losses=1, duplicates=1, overtakings=1, delays=1),
    "unheard": Bounds(elections=2, unheard=1, delays=1),
    "deaths": Bounds(settled=1, crashes=1, power_losses=1, survivals=1, restarts=2, delays=1),
    "disks": Bounds(flushes=1, disk_errors=1, crashes=1, disk_losses=1, epoch_losses=1, restarts=1),
    "leaving": Bounds(settled=1, stops=1, shutdowns=1, restarts=1, expiries=1, delays=1),
    "sessions": Bounds(settled=1, records=0, slow_sessions=2, crashes=1, restarts=1, delays=1),
    "controllers": Bounds(settled=1, failovers=1, crashes=1, restarts=1, delays=1),
    "disconnected": Bounds(settled=1, partitions=1, elections=1, lags=1, delays=1),
    "settings": Bounds(
        records=1, lowerings=1, stops=1, restarts=1, failovers=1, slow_sessions=1, delays=1
    ),
    "joining": Bounds(in_sync=2, late_joins=1, lags=1, elections=1, delays=1),
}


@cache
def searched(name: str) -> Explorer:
    question = Question(bounds=BOUNDS[name])
    explorer = Explorer(question, Limits(states=4_000), lambda _: None)
    assert explorer.run().verdict in (HOLDS, LIMIT)
    return explorer


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
def test_the_world_ends_where_the_search_says(name: str) -> None:
    explorer = searched(name)
    count = len(explorer.states)
    for number in sorted({place * count // TRIED for place in range(TRIED)}):
        path = explorer.path(number)
        script = Script(explorer.question)
        script.play(path)
        tidied(script.stage)
        state = explorer.states[number]
        used = Counter(used_by(explorer, state))
        same = value_of_world(script.stage, used) == value_of_state(explorer, state)
        assert same, [line.commands for line in script.lines]


@pytest.mark.slow
def test_these_bounds_have_every_kind_of_action_but_reading() -> None:
    kinds: set[str] = set()
    for name in BOUNDS:
        explorer = searched(name)
        choices = explorer._walk.moves.choices
        for parent, place in zip(explorer._parents, explorer._places, strict=True):
            if parent >= 0:
                kinds.add(list(choices.actions(explorer.states[parent]))[place].kind)
    assert kinds - {"begin"} == set(KINDS) - {"read"}
