"""Steps from state to state, and paths through the states.

A path is the indexes of its actions among the choices, two bytes each. The order of the choices
does not depend on the process, so a path means the same everywhere. A search by levels finds states
in the order of their paths: shorter ones first, equally long ones in byte order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from holdfast.lab.world.messages import Envelope
from holdfast.search.event_effects import Moves
from holdfast.search.question import Question
from holdfast.search.states.client_facts import Violation
from holdfast.search.states.space import Action, State
from holdfast.search.states.symmetry import Symmetry, is_symmetric

Way = bytes
STEP_BYTES: Final = 2
_LONGEST_FLOW = 500
"""At most so many messages follow one action before the search keeps a state in between."""


class Event(NamedTuple):
    """One event on the path to a violation, independent of the search that found it."""

    kind: str
    broker: int = 0
    variant: str = ""
    source: str = ""
    target: str = ""
    position: int = 0
    """The message's position in its link, from the oldest."""
    what: str = ""
    """The kind of the message."""


def step_of(place: int) -> bytes:
    """The path step for the choice with this index."""
    return place.to_bytes(STEP_BYTES, "big")


def depth_of(way: Way) -> int:
    """The number of actions of a path."""
    return len(way) // STEP_BYTES


def order_of(way: Way) -> tuple[int, Way]:
    """The sort key of paths."""
    return len(way), way


class Walk:
    """The states of a question, and the steps between them."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.space, self.first = question.begin()
        self.moves = Moves(self.space)
        self.generated = 1
        """States generated, the first one included."""
        self._canonical = None
        if question.symmetry and is_symmetric(question.bounds):
            self._canonical = Symmetry(self.space).canonical

    @property
    def renames(self) -> bool:
        """Whether states that differ only in broker names count as one."""
        return self._canonical is not None

    def key(self, state: State) -> State:
        """The canonical state, which represents all states that differ only in broker names."""
        return self._canonical(state) if self._canonical else state

    def step(
        self, state: State, action: Action, events: list[Action] | None = None
    ) -> tuple[State, Violation | None]:
        """Apply an action and all messages that must flow after it; judge each state."""
        moves, space = self.moves, self.space
        following: Action | None = action
        violation: Violation | None = None
        for _ in range(_LONGEST_FLOW):
            if following is None or violation is not None:
                break
            if events is not None:
                events.append(following)
            state, violation = moves.apply(state, following)
            self.generated += 1
            violation = violation or space.judge(state)
            following = moves.choices.only_flow(state)
        return state, violation

    def events(self, way: Way) -> tuple[Event, ...]:
        """The events of a path from the first state, in order."""
        return tuple(self._events(way))

    def _events(self, way: Way) -> Iterator[Event]:
        state = self.first
        for start in range(0, len(way), STEP_BYTES):
            place = int.from_bytes(way[start : start + STEP_BYTES], "big")
            action = list(self.moves.choices.actions(state))[place]
            taken: list[Action] = []
            state, _ = self.step(state, action, taken)
            yield from map(self._event, taken)

    def _event(self, action: Action) -> Event:
        if action.place is None:
            return Event(action.kind, action.broker, action.variant)
        source, target, payload = self.space.parts.messages[action.place.message]
        what = Envelope(source, target, payload, None, 0).wire_name
        return Event(action.kind, 0, "", source, target, action.place.position, what)
