"""Invariants that must hold after every event, under any schedule.

A violation is recorded, not raised: a scenario about a missing guard shows which invariant breaks.
A seeded run with all guards treats every violation as a failure. Each invariant names the faults
that it tolerates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.model import NO_BROKER, LeaderEpoch, Offset

if TYPE_CHECKING:
    from holdfast.lab.world.broker import SimBroker
    from holdfast.lab.world.world import World


class Violation(NamedTuple):
    """An invariant that did not hold."""

    invariant: str
    text: str
    event: int


class Invariants:
    """Checks the invariants of a world, and records the violations."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.violations: list[Violation] = []
        self._epochs: dict[tuple[str, int], LeaderEpoch] = {}
        self._watermarks: dict[tuple[str, int], Offset] = {}
        self._leaders: dict[LeaderEpoch, str] = {}
        self.commits: dict[int, int] = {}
        """The record (key) that was first committed at each offset."""
        self.lossy: dict[str, str] = {}
        """Brokers that have lost written records to a fault, and how."""
        self.unclean = False
        """Whether an unclean election may have discarded committed records."""
        self.skipped: dict[str, str] = {}
        """Invariants that are no longer checked, and why."""

    def committed(self, broker: SimBroker, was: Offset, high_watermark: Offset) -> None:
        """A presumed leader committed [was, high_watermark)."""
        acknowledgements = self.world.history.acknowledgements
        for offset, key in enumerate(broker.disk.keys_between(was, high_watermark), was):
            acknowledgements[key].exposed = True
            first = self.commits.setdefault(offset, key)
            if first != key and not self._tolerated("one-commit-per-offset"):
                label, other = acknowledgements[key].label, acknowledgements[first].label
                self._note(
                    "one-commit-per-offset",
                    f"{broker.name} commits {label} at {offset}, where {other} was",
                )

    def lost_records(self, name: str, how: str) -> None:
        """A fault has destroyed written records of this broker."""
        self.lossy[name] = how

    def sent_back(self, consumer: str, broker: str, position: int) -> None:
        """A consumer got OFFSET_OUT_OF_RANGE at a position that it had reached by reading."""
        if not self._tolerated("reader-goes-on"):
            text = f"{consumer} had read up to {position}, and {broker} knows no such offset"
            self._note("reader-goes-on", text)

    def _tolerated(self, invariant: str) -> bool:
        reason = ""
        if self.unclean:
            reason = "an unclean election discarded records"
        elif self.lossy:
            reason = f"{', '.join(self.lossy)} lost written records"
        if reason:
            self.skipped[invariant] = reason
        return bool(reason)

    def _note(self, invariant: str, text: str) -> None:
        known = any(one.invariant == invariant and one.text == text for one in self.violations)
        if not known:
            self.violations.append(Violation(invariant, text, len(self.world.recorder.events) - 1))

    def check(self) -> None:
        """Check the invariants that are cheap to check."""
        if self.world.partition not in self.world.store.partitions:
            return  # The world is still being made.
        for broker in self.world.brokers.values():
            if broker.alive:
                self._epoch_never_falls(broker)
                if broker.replica.presumes_leadership:
                    self._one_leader_per_epoch(broker)
                    self._watermark_never_falls(broker)
        self._leader_in_isr()
        self._isr_holds_what_is_committed()

    def _epoch_never_falls(self, broker: SimBroker) -> None:
        key = (broker.name, broker.incarnations)
        before = self._epochs.get(key, LeaderEpoch(-1))
        now = broker.replica.leader_epoch
        if now < before:
            self._note("epoch-never-falls", f"{broker.name} goes from epoch {before} to {now}")
        self._epochs[key] = now

    def _one_leader_per_epoch(self, broker: SimBroker) -> None:
        epoch = broker.replica.leader_epoch
        known = self._leaders.setdefault(epoch, broker.name)
        if known != broker.name:
            self._note("one-leader-per-epoch", f"{known} and {broker.name} lead in epoch {epoch}")

    def _watermark_never_falls(self, broker: SimBroker) -> None:
        key = (f"{broker.name}/{broker.incarnations}", broker.replica.leader_epoch)
        now = broker.replica.log.high_watermark
        before = self._watermarks.get(key, now)
        if now < before:
            self._note("high-watermark-never-falls", f"{broker.name}'s fell from {before} to {now}")
        self._watermarks[key] = now

    def _leader_in_isr(self) -> None:
        state = self.world.partition_state()
        if state.leader != NO_BROKER and state.leader not in state.isr:
            name = self.world.name_of(state.leader)
            self._note("leader-in-isr", f"{name} leads but is not in the ISR")

    def _isr_holds_what_is_committed(self) -> None:
        """StrongIsr: no clean election can lose a committed record."""
        if self._tolerated("isr-holds-what-is-committed"):
            return
        world = self.world
        members = [world.brokers[world.name_of(one)] for one in world.partition_state().isr]
        for leader in world.brokers.values():
            if not (leader.alive and leader.replica.presumes_leadership):
                continue
            high_watermark = leader.replica.log.high_watermark
            held = leader.disk.keys_between(0, high_watermark)
            for member in members:
                same = member.disk.keys_between(0, high_watermark) == held
                if member is not leader and not same:
                    self._note(
                        "isr-holds-what-is-committed",
                        f"{member.name} is in the ISR and lacks records that {leader.name} "
                        f"has committed below {high_watermark}",
                    )
