"""The group coordinator of a broker: the coordinator of `__consumer_offsets`.

The core's `Groups` makes all decisions; the shards of the base class drive it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from holdfast.broker.coordinator import CoordinatorKind, CoordinatorParts, CoordinatorShards
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.metadata.topic_names import OFFSETS_TOPIC
from holdfast.broker.settings import BrokerSettings
from holdfast.broker.uuids import new_uuid
from holdfast.core.groups import Caller, Groups, GroupSettings
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.coordinator_records import decode_record, encode_record, subscribed_topics

LONGEST_NAME_IN_ID: Final = 32_000
"""Member ids begin with the client id, and must fit a string of the wire format."""


class GroupCoordinator(CoordinatorShards[Groups]):
    """All groups that this broker coordinates."""

    def __init__(self, parts: CoordinatorParts, configs: Configs, rng: random.Random) -> None:
        self._rng = rng
        kind = CoordinatorKind(
            topic=OFFSETS_TOPIC,
            name="groups",
            new_state=lambda: Groups(_group_settings(configs.settings), subscribed_topics),
            encode=encode_record,
            decode=decode_record,
            carry_out=_answer,
            write_timeout_ms=lambda: configs.settings.offsets_commit_timeout_ms,
        )
        super().__init__(parts, kind)

    def heartbeat(self, caller: Caller) -> ErrorCode:
        """A member's heartbeat."""
        return self.ask_directly(
            caller.group_id, lambda groups, now_ms: groups.heartbeat(caller, now_ms)
        )

    def new_member_id(self, name: str) -> str:
        """A unique member id."""
        drawn = new_uuid(self._rng)
        opening = name.encode()[:LONGEST_NAME_IN_ID].decode(errors="ignore")
        return f"{opening}-{drawn}"

    def partitions_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """The controller has deleted these partitions."""
        if partitions:
            self.ask_all(lambda groups, now_ms: groups.partitions_deleted(partitions, now_ms))


def _answer(effect: Any) -> None:
    """Every effect but a write is an answer; the waiter that identifies a request is called."""
    effect.waiter(effect)


def _group_settings(settings: BrokerSettings) -> GroupSettings:
    names = [one.name for one in fields(GroupSettings)]
    return GroupSettings(**{name: getattr(settings, name) for name in names})
