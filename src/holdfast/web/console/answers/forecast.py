"""What a fault would probably do: the real controller core is asked about the observed state.

A copy of the cluster's state goes to the `Controller` of the core, with the loss of the broker as
the next event. Its decisions are the brokers' decisions. What can be lost follows from them: the
records of the old leader that the new one lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from holdfast.core import (
    AskLogEnd,
    Commands,
    Controller,
    LogEnd,
    Registration,
    StateConfirmed,
    WriteState,
)
from holdfast.core.rules import Settings
from holdfast.model import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    Offset,
    PartitionState,
    ReplicaBroker,
    TopicPartition,
)
from holdfast.web.console.reading.observation import Observation, PartitionFacts

MOST_NAMED: Final = 6
_ENDS_SESSION: Final = ("kill", "power-loss", "pause", "isolate", "stop", "restart")
_WORDS: Final = {
    "kill": "The session ends some seconds after the process.",
    "power-loss": "Everything that was not flushed is gone on that machine.",
    "pause": "Nothing changes until its session expires; then it counts as dead.",
    "isolate": "It may still act as leader for itself until its session expires, but can commit "
    "nothing that needs its followers.",
    "stop": "It moves its leaderships first, so clients notice little.",
    "restart": "A running broker is stopped in a controlled way first.",
    "resume": "It learns that its session expired, registers again, and catches up as follower.",
    "partition": "Followers that cannot reach their leader leave the ISR after "
    "replica.lag.time.max.ms; no session ends, so no leader changes.",
    "delay": "Followers fetch later. Those that fall behind for replica.lag.time.max.ms leave the "
    "ISR; acks=all takes longer.",
    "drop": "Connections break again and again: lag grows, and followers may leave the ISR.",
    "slow-flush": "Only writes that wait for a flush (flush.messages) take longer. What is not "
    "flushed, and would be lost with the power, grows.",
    "expire-session": "It loses its leaderships, registers again and comes back as a follower; "
    "its records are intact.",
    "heal": "Links, store and disks work again; followers catch up. A log that failed stays "
    "offline until its broker is restarted.",
    "disk-full": "The logs fail with the next write. A broker without a log directory stops.",
    "io-error": "The logs fail with the next read or write. A broker without a log directory "
    "stops.",
}


class Fate(NamedTuple):
    """What becomes of one partition."""

    name: str
    was: int
    leader: int
    rule: str
    isr: tuple[int, ...]
    lost: int
    """Committed records that the new leader does not have."""
    uncommitted: int
    """Records above the high watermark that only the failing leader has: acks=1 lost them."""
    below_min: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """The answer to one question."""

    lines: tuple[str, ...]
    """In words: the leaders, the records, then what this fault does at all."""
    fates: tuple[Fate, ...] = ()
    risk: str = "none"
    """none, availability or loss."""

    def to_dict(self) -> dict[str, Any]:
        shown = [one._asdict() for one in self.fates[:50]]
        return {"lines": list(self.lines), "risk": self.risk, "partitions": shown}


def forecast(seen: Observation, call: str, fields: Mapping[str, Any]) -> Forecast:
    """What this fault would probably do now."""
    words = _WORDS.get(call, "")
    brokers = [one for one in fields.get("brokers", ()) if isinstance(one, int)]
    if call in ("disk-full", "io-error"):
        return _in_words(
            seen, words, _after_log_failures(seen, brokers, fields.get("partition") or "")
        )
    if call in _ENDS_SESSION and (call != "restart" or _all_run(seen, brokers)):
        loses = call == "power-loss"
        after = _after_losses(seen, brokers, clean=call in ("stop", "restart"))
        return _in_words(seen, words, after, brokers if loses else ())
    if call == "restart":
        words = "It starts, and joins the ISRs when it has caught up."
        return _in_words(seen, words, _after_start(seen, brokers))
    return Forecast((words,) if words else ())


def what_if_dies(seen: Observation, broker: int) -> dict[str, Any]:
    """What can be lost if this broker dies now: as a process, and with its machine."""
    return {
        "kill": forecast(seen, "kill", {"brokers": [broker]}).to_dict(),
        "power-loss": forecast(seen, "power-loss", {"brokers": [broker]}).to_dict(),
    }


def _all_run(seen: Observation, brokers: Iterable[int]) -> bool:
    return all(one in seen.brokers and seen.brokers[one].is_up for one in brokers)


# The core.


class _Core:
    """The controller core on a copy of the cluster's state."""

    def __init__(self, seen: Observation) -> None:
        live = [one.id for one in seen.brokers.values() if one.state in ("running", "silent")]
        self.rules: dict[str, str] = {}
        self._seen = seen
        self.controller = Controller(
            ControllerEpoch(1),
            [Registration(BrokerId(one), _EPOCH, _EPOCH) for one in live],
            {_name(one): _state(one) for one in seen.partitions.values()},
            {_name(one): settings_of(seen, one) for one in seen.partitions.values()},
        )

    def carry_out(self, commands: Commands) -> None:
        """Confirm every write, until the controller has nothing left to decide."""
        waiting = list(commands)
        while waiting:  # Ends: a confirmed state is changed again only by another event.
            command = waiting.pop(0)
            if isinstance(command, WriteState):
                waiting.extend(self.controller.store_confirmed(command.partition))
            elif isinstance(command, StateConfirmed) and command.rule:
                self.rules[str(command.partition)] = command.rule
            elif isinstance(command, AskLogEnd):
                waiting.extend(self._answer(command))

    def _answer(self, asked: AskLogEnd) -> Commands:
        """A candidate's log end, as last observed; a complete log if nobody has seen it."""
        one = self._seen.partitions[str(asked.partition)]
        copy = one.copies.get(asked.broker)
        epoch = one.leader_epoch if copy is None or copy.last_epoch is None else copy.last_epoch
        end = LogEnd(LeaderEpoch(epoch), Offset(_end(one, asked.broker, one.end or 0)))
        return self.controller.log_end_answered(
            asked.partition, asked.broker, asked.leader_epoch, end
        )


_EPOCH = BrokerEpoch(1)


def _name(one: PartitionFacts) -> TopicPartition:
    return TopicPartition(one.topic, one.index)


def _state(one: PartitionFacts) -> PartitionState:
    members = (*one.isr, *(one.eligible or ()))
    return PartitionState(
        tuple(BrokerId(broker) for broker in one.replicas),
        tuple(BrokerId(broker) for broker in one.isr),
        leader=BrokerId(one.leader),
        leader_epoch=LeaderEpoch(one.leader_epoch),
        eligible_leaders=tuple(BrokerId(broker) for broker in one.eligible or ()),
        last_known_eligible=tuple(BrokerId(broker) for broker in one.last_known),
        member_epochs=tuple(ReplicaBroker(BrokerId(broker), _EPOCH) for broker in members),
    )


def settings_of(seen: Observation, one: PartitionFacts) -> Settings:
    known = seen.topics.get(one.topic)
    if known is None:
        return Settings()
    return Settings(
        min_insync_replicas=known.min_insync, unclean_leader_election_enable=known.unclean
    )


def _after_losses(seen: Observation, brokers: Iterable[int], *, clean: bool) -> _Core:
    core = _Core(seen)
    for broker in brokers:
        if clean:
            core.carry_out(core.controller.shutdown_asked(BrokerId(broker), _EPOCH))
        core.carry_out(core.controller.broker_lost(BrokerId(broker)))
    return core


def _after_log_failures(seen: Observation, brokers: Iterable[int], only: str) -> _Core:
    core = _Core(seen)
    for broker in brokers:
        for one in seen.partitions.values():
            if broker in one.replicas and only in ("", one.name):
                failed = core.controller.replica_failed(_name(one), BrokerId(broker), _EPOCH)
                core.carry_out(failed)
    return core


def _after_start(seen: Observation, brokers: Iterable[int]) -> _Core:
    core = _Core(seen)
    for broker in brokers:
        epoch = BrokerEpoch(2)
        stopped = broker in seen.brokers and seen.brokers[broker].state == "stopped"
        registration = Registration(BrokerId(broker), epoch, _EPOCH if stopped else epoch)
        core.carry_out(core.controller.broker_registered(registration))
    return core


# In words.


def _in_words(
    seen: Observation, words: str, core: _Core, without_power: Iterable[int] = ()
) -> Forecast:
    fates = [_fate(seen, one, core, tuple(without_power)) for one in seen.partitions.values()]
    # Internal topics last: the user's own matter more.
    changed = sorted(
        (one for one in fates if one is not None), key=lambda it: it.name.startswith("__")
    )
    lines = (*_of_leaders(changed), *_of_records(changed), words)
    risk = "none"
    if any(one.below_min or one.leader < 0 <= one.was for one in changed):
        risk = "availability"
    if any(one.lost for one in changed):
        risk = "loss"
    return Forecast(lines, tuple(changed), risk)


def _of_leaders(changed: Sequence[Fate]) -> Iterator[str]:
    offline = [one for one in changed if one.leader < 0 <= one.was]
    waiting = [one for one in changed if one.leader < 0 and one.was < 0]
    moved = [one for one in changed if one.leader >= 0 and one.leader != one.was]
    if offline:
        yield f"Without a leader: {_names(offline)}. Nothing can be read or written there."
    if moved:
        named = ", ".join(f"{one.name} → b{one.leader}" for one in moved[:MOST_NAMED])
        more = f" and {len(moved) - MOST_NAMED:,} more" if len(moved) > MOST_NAMED else ""
        yield f"Another leader: {named}{more}."
    unclean = [one for one in moved if one.rule == "unclean"]
    if unclean:
        yield f"By an unclean election: {_names(unclean)}."
    if waiting:
        yield (
            f"Still without a leader: {_names(waiting)}. After an unclean restart a log may be "
            "incomplete, so the controller waits for the other candidates."
        )
    if not changed:
        yield "No partition changes its leader."


def _of_records(changed: Sequence[Fate]) -> Iterator[str]:
    lost = sum(one.lost for one in changed)
    if lost:
        names = _names([one for one in changed if one.lost])
        yield f"Can be lost: {lost:,} committed records of {names}."
    uncommitted = sum(one.uncommitted for one in changed)
    if uncommitted:
        yield f"{uncommitted:,} uncommitted records are only on it: lost if sent with acks=1 or 0."
    below = [one for one in changed if one.below_min and one.leader >= 0]
    if below:
        yield f"Below min.insync.replicas, so acks=all is refused: {_names(below)}."
    if not lost and any(one.leader < 0 <= one.was for one in changed):
        yield "Nothing committed is lost: it is readable again when the broker is back."
    elif not lost and any(one.leader >= 0 for one in changed):
        yield "No committed record is lost: another in-sync replica has each of them."


def _fate(
    seen: Observation, one: PartitionFacts, core: _Core, without_power: tuple[int, ...]
) -> Fate | None:
    after = core.controller.partitions[_name(one)]
    if (after.leader, after.isr) == (one.leader, one.isr):
        return None
    settings = settings_of(seen, one)
    least = min(settings.min_insync_replicas, len(one.replicas))
    end = one.end or 0
    lost = 0
    if after.leader >= 0 and after.leader != one.leader:
        lost = max(0, end - _end(one, after.leader, end))
    elif after.leader < 0 and one.leader in without_power and one.isr == (one.leader,):
        # The only replica that has everything loses what it has not flushed.
        flushed = one.copies[one.leader].flushed if one.leader in one.copies else None
        lost = max(0, end - flushed) if flushed is not None else 0
    old_end = _end(one, one.leader, end)
    held = max(end, _end(one, after.leader, end)) if after.leader >= 0 else old_end
    uncommitted = max(0, old_end - held) if after.leader != one.leader else 0
    return Fate(
        one.name,
        one.leader,
        after.leader,
        core.rules.get(one.name, ""),
        tuple(after.isr),
        lost,
        uncommitted,
        len(after.isr) < least <= len(one.isr),
    )


def _end(one: PartitionFacts, broker: int, unknown: int) -> int:
    copy = one.copies.get(broker)
    return unknown if copy is None or copy.log_end is None else copy.log_end


def _names(fates: Sequence[Fate]) -> str:
    more = len(fates) - MOST_NAMED
    named = ", ".join(one.name for one in fates[:MOST_NAMED])
    return named + (f" and {more:,} more" if more > 0 else "")
