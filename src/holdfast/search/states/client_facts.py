"""The history of a state, by which it is judged: responses to clients, and committed records.

The rules are those of `verdict` and `invariants`, applied to every state and not only at the end.
For a loss that is sound: once the elected leader lacks a record, it writes others at its offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.core import ACKS_ALL
from holdfast.lab.world.client_history import Status
from holdfast.lab.world.world import World
from holdfast.search.states.component_views import BrokerView, ControlView

Fact = tuple[Any, ...]
"""A fact that a step reports: its name and arguments."""

SENT, ACKNOWLEDGED, REFUSED = "s", "a", "r"


class Violation(NamedTuple):
    """A violation: the thing that a search looks for."""

    outcome: str
    """An outcome of `lab.judge.verdict`, or the name of an invariant."""
    text: str


class Reader(NamedTuple):
    """A consumer's position and what it has read."""

    position: int = 0
    epoch: int = -1
    first: int = 0
    consumed: tuple[tuple[int, int], ...] = ()
    """Offsets and records, in the order of reading."""


class Facts(NamedTuple):
    """The facts of one state."""

    answers: tuple[str, ...] = ()
    """The response for each record, in the order of sending."""
    commits: tuple[int, ...] = ()
    """The record that was first committed at each offset."""
    exposed: tuple[int, ...] = ()
    """All records that were below a leader's high watermark."""
    lossy: tuple[str, ...] = ()
    """Brokers that have lost written records."""
    unclean: bool = False
    """Whether an unclean election discarded records."""
    reader: Reader = Reader()

    @classmethod
    def of(cls, world: World) -> Facts:
        """The facts of a world, from its client history and invariants, without its consumers."""
        letters = {Status.ACKNOWLEDGED: ACKNOWLEDGED, Status.REFUSED: REFUSED}
        produced = list(world.history.acknowledgements.values())
        commits = world.invariants.commits
        end = max(commits, default=-1) + 1
        return cls(
            answers=tuple(letters.get(one.status, SENT) for one in produced),
            commits=tuple(commits.get(offset, -1) for offset in range(end)),
            exposed=tuple(one.key for one in produced if one.exposed),
            lossy=tuple(sorted(world.invariants.lossy)),
            unclean=world.invariants.unclean,
        )

    @property
    def tolerated(self) -> bool:
        """Whether invariants about committed records no longer apply."""
        return bool(self.lossy) or self.unclean

    def sent(self, answer: str = SENT) -> Facts:
        """The facts with one more record sent; with acks=0 it counts as acknowledged."""
        return self._replace(answers=(*self.answers, answer))

    def after(self, fact: Fact) -> tuple[Facts, Violation | None]:
        """The facts with one more, and the violation that it is, if any."""
        match fact:
            case ("acknowledged", number):
                return self._answered(number, ACKNOWLEDGED), None
            case ("refused", number):
                return self._answered(number, REFUSED), None
            case ("committed", was, keys):
                return self._committed(was, keys)
            case ("lossy", name):
                return self._replace(lossy=tuple(sorted({*self.lossy, name}))), None
            case ("unclean",):
                return self._replace(unclean=True), None
            case ("read", Reader() as reader):
                return self._replace(reader=reader), None
            case ("violation", name, text):
                return self, Violation(name, text)
            case _:
                raise AssertionError(fact)

    def _answered(self, number: int, answer: str) -> Facts:
        if self.answers[number] != SENT:
            return self
        answers = (*self.answers[:number], answer, *self.answers[number + 1 :])
        return self._replace(answers=answers)

    def _committed(self, was: int, keys: tuple[int, ...]) -> tuple[Facts, Violation | None]:
        commits = list(self.commits)
        broken = None
        for offset, key in enumerate(keys, was):
            commits.extend(-1 for _ in range(offset + 1 - len(commits)))
            if commits[offset] < 0:
                commits[offset] = key
            elif commits[offset] != key and not self.tolerated:
                text = f"r{key} is committed at {offset}, where r{commits[offset]} was"
                broken = Violation("one-commit-per-offset", text)
        exposed = tuple(sorted({*self.exposed, *keys}))
        return self._replace(commits=tuple(commits), exposed=exposed), broken


def judged(
    facts: Facts,
    brokers: Sequence[BrokerView],
    control: ControlView,
    acks: int,
    minimum: int,
    *,
    strict: bool,
) -> Violation | None:
    """The first violation in a state, if any.

    `strict`: losses beyond the guarantee count as well.
    """
    return (
        _two_leaders(brokers)
        or _lost(facts, brokers, control, acks, None if strict else minimum)
        or _diverged(facts, brokers)
        or _isr_lacks(facts, brokers, control)
    )


def _two_leaders(brokers: Sequence[BrokerView]) -> Violation | None:
    leaders: dict[int, int] = {}
    for place, one in enumerate(brokers, 1):
        if one.leads and leaders.setdefault(one.leader_epoch, place) != place:
            text = f"b{leaders[one.leader_epoch]} and b{place} lead in epoch {one.leader_epoch}"
            return Violation("one-leader-per-epoch", text)
    return None


def _lost(
    facts: Facts,
    brokers: Sequence[BrokerView],
    control: ControlView,
    acks: int,
    minimum: int | None,
) -> Violation | None:
    """A lost record, if any. With `minimum` None no loss is excused."""
    leader = brokers[control.leader - 1] if control.leader > 0 else None
    if leader and not (leader.leads and leader.leader_epoch == control.leader_epoch):
        leader = None
    sources = [leader] if leader else brokers
    readable = {key for one in sources for key in one.keys}
    if minimum is not None and (len(facts.lossy) >= minimum or facts.unclean):
        return None
    for key, answer in enumerate(facts.answers):
        if key in readable:
            continue
        if answer == ACKNOWLEDGED and (minimum is None or acks == ACKS_ALL or key in facts.exposed):
            where = f"b{control.leader} leads without it" if leader else "no disk holds it"
            return Violation("lost", f"r{key} was acknowledged, and {where}")
        if key in facts.exposed:
            return Violation("exposed-lost", f"r{key} could be read, and is gone")
    return None


def _diverged(facts: Facts, brokers: Sequence[BrokerView]) -> Violation | None:
    if facts.tolerated:
        return None
    seen: dict[int, int] = {}
    for one in brokers:
        if one.alive:
            for offset, key in enumerate(one.keys[: one.high_watermark]):
                if seen.setdefault(offset, key) != key:
                    text = f"r{seen[offset]} and r{key} are both committed at {offset}"
                    return Violation("diverged", text)
    return None


def _isr_lacks(
    facts: Facts, brokers: Sequence[BrokerView], control: ControlView
) -> Violation | None:
    """StrongIsr: no clean election can lose a committed record."""
    if facts.tolerated:
        return None
    for place, one in enumerate(brokers, 1):
        if not one.leads:
            continue
        held = one.keys[: one.high_watermark]
        for member in control.isr:
            if member != place and brokers[member - 1].keys[: one.high_watermark] != held:
                text = (
                    f"b{member} is in the ISR and lacks what b{place} has committed "
                    f"below {one.high_watermark}"
                )
                return Violation("isr-holds-what-is-committed", text)
    return None
