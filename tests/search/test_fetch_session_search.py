"""Every schedule of a fetch session within bounds: in the end the client has everything.

The mutants prove the search: without any one of these rules a client misses something for good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.core import FetchSession, Reader
from tests.search.fetch_session_clients import Client, ConsumerClient, FollowerClient
from tests.search.fetch_session_world import Action, World

pytestmark = pytest.mark.slow

Make = Callable[[], World]


def replay(make: Make, trace: tuple[Action, ...]) -> World:
    world = make()
    for action in trace:
        world.do(action)
    return world


def search(make: Make) -> tuple[int, str]:
    """The number of states, and the first schedule after which a client misses something."""
    seen = {make().key(): None}
    queue: deque[tuple[Action, ...]] = deque([()])
    while queue:
        trace = queue.popleft()
        world = replay(make, trace)
        actions = world.actions()
        missing = world.come_to_rest()
        if missing:
            return len(seen), f"{missing} after {trace}"
        for action in actions:
            after = (*trace, action)
            key = replay(make, after).key()
            if key not in seen:
                seen[key] = None
                queue.append(after)
    return len(seen), ""


def bounds(kind: type[Client], partitions: int, *late: str, **left: int) -> Make:
    return lambda: World(kind, partitions, late, **left)


FOLLOWER = bounds(FollowerClient, 1, produce=2, time=1)
FOLLOWER_ELECTED = bounds(FollowerClient, 1, "other", "flush", produce=1, elect=1, delete=1)
FOLLOWER_OF_TWO = bounds(FollowerClient, 2, "other", "confirm", produce=2)
CONSUMER = bounds(ConsumerClient, 1, "confirm", produce=2, delete=1, discard=1, leave=1)
CONSUMER_OF_TWO = bounds(ConsumerClient, 2, "other", "confirm", produce=3, discard=1)
ALL = {
    "follower": FOLLOWER,
    "follower, elected": FOLLOWER_ELECTED,
    "follower of two": FOLLOWER_OF_TWO,
    "consumer": CONSUMER,
    "consumer of two": CONSUMER_OF_TWO,
}


@pytest.mark.parametrize("name", ALL)
def test_the_client_of_a_session_misses_nothing(name: str) -> None:
    states, missed = search(ALL[name])
    assert not missed
    assert states > 100, "the bounds allow nothing"


def serves_followers_again(patch: pytest.MonkeyPatch) -> None:
    """Without the fix of seed 4462."""

    def was_served(session: FetchSession[Any], reader: Reader[Any]) -> None:
        session.served.append(reader)

    def discards_older_answers(_: FetchSession[Any], *, overtakes: bool) -> bool:
        return overtakes

    patch.setattr(FetchSession, "_was_served", was_served)
    patch.setattr(FetchSession, "_discards_older_answers", discards_older_answers)


def repeats_no_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FetchSession, "_discards_older_answers", lambda *_, **__: False)


def serves_no_consumer_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FetchSession, "_serve_again", lambda _: None)


def drops_what_has_no_room(patch: pytest.MonkeyPatch) -> None:
    real = FetchSession.answered

    def answered(session: FetchSession[Any], *args: Any, **flags: Any) -> bool:
        return real(session, *args, **{**flags, "is_all": True})

    patch.setattr(FetchSession, "answered", answered)


def drops_refused_partitions(patch: pytest.MonkeyPatch) -> None:
    real = FetchSession.answered

    def answered(session: FetchSession[Any], *args: Any, **flags: Any) -> bool:
        named = real(session, *args, **flags)
        if flags["is_refused"]:
            session.pending.pop(args[0])
        return named

    patch.setattr(FetchSession, "answered", answered)


def parks_nowhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FetchSession, "_park_at", lambda *_: None)


def ignores_moved_offsets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FetchSession, "moved", lambda *_: None)


def counts_named_partitions_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FetchSession, "isr_changed", lambda *_: None)


MUTANTS = [
    (serves_followers_again, FOLLOWER),
    (repeats_no_answer, FOLLOWER),
    (parks_nowhere, FOLLOWER),
    (ignores_moved_offsets, FOLLOWER),
    (counts_named_partitions_only, FOLLOWER),
    (drops_what_has_no_room, FOLLOWER_OF_TWO),
    (drops_what_has_no_room, CONSUMER_OF_TWO),
    (drops_refused_partitions, CONSUMER),
    (serves_no_consumer_again, CONSUMER),
]


@pytest.mark.parametrize(("mutate", "make"), MUTANTS)
def test_the_search_finds_a_missing_rule(
    mutate: Callable[[pytest.MonkeyPatch], None], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    assert search(make)[1]
