"""The log ends that a controller asks for when only a comparison of logs can choose a leader."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.controller.effects import AskLogEnd, Commands
from holdfast.core.controller.leader_election import Brokers, LogEnd
from holdfast.model import BrokerId, PartitionState, TopicPartition


class LogEndQuestions:
    """For each partition: the candidates, and the log ends that they have reported."""

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: dict[TopicPartition, dict[BrokerId, LogEnd | None]] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether a candidate has not answered."""
        return any(end is None for ends in self._asked.values() for end in ends.values())

    def ask(
        self, partition: TopicPartition, state: PartitionState, candidates: tuple[BrokerId, ...]
    ) -> Commands:
        """Ask the candidates, unless exactly these were asked already."""
        asked = self._asked.get(partition)
        if asked and tuple(asked) == candidates:
            return ()
        self._asked[partition] = dict.fromkeys(candidates)
        return tuple(AskLogEnd(one, partition, state.leader_epoch) for one in candidates)

    def ask_again(
        self, brokers: Brokers, partitions: Mapping[TopicPartition, PartitionState]
    ) -> Commands:
        """Repeat unanswered questions: a message may be lost, or have arrived too early."""
        return tuple(
            AskLogEnd(broker, partition, partitions[partition].leader_epoch)
            for partition, asked in self._asked.items()
            for broker, end in asked.items()
            if end is None and broker in brokers
        )

    def answered(
        self, partition: TopicPartition, broker: BrokerId, end: LogEnd, fit: Brokers
    ) -> dict[BrokerId, LogEnd] | None:
        """All log ends, if this was the last one and every candidate is still live."""
        asked = self._asked.get(partition)
        if asked is None or broker not in asked:
            return None
        asked[broker] = end
        ends = {one: known for one, known in asked.items() if known is not None}
        if len(ends) < len(asked) or any(one not in fit for one in asked):
            return None
        del self._asked[partition]
        return ends

    def restarted(self, broker: BrokerId) -> None:
        """Its log may have lost its end since it answered: ask its fellow candidates again, too."""
        self._asked = {one: ends for one, ends in self._asked.items() if broker not in ends}

    def forget(self, partition: TopicPartition) -> None:
        """The partition has a leader, or is being deleted."""
        self._asked.pop(partition, None)
