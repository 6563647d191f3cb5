"""More partitions than one command may have: sent in several, and carried out in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.broker.apis import leader_and_isr, stop_replica, update_metadata
from holdfast.broker.controller import broker_channel
from holdfast.broker.metadata.controller_fencing import Commands
from holdfast.protocol.codec.types import ZERO_UUID
from holdfast.protocol.messages.topics import (
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.support.waiting import eventually
from tests.unit.broker.three import Three, play

PARTITIONS: Final = 10
MAX_PARTITIONS_PER_REQUEST: Final = 4
PART: Final = 3


def all_know(three: Three, name: str) -> bool:
    return all(
        topic is not None and len(topic.partitions) == PARTITIONS
        for one in three.brokers.values()
        for topic in [one.metadata.topic(name)]
    )


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of partitions in each command that a broker receives."""
    found: list[int] = []
    obey = Commands.obey

    def noted(self: Commands, call: Any, command: Any, *rest: Any) -> None:
        found.append(sum(len(one.partition_states) for one in command.topic_states))
        obey(self, call, command, *rest)

    monkeypatch.setattr(Commands, "obey", noted)
    monkeypatch.setattr(broker_channel, "MAX_PARTITIONS_PER_REQUEST", MAX_PARTITIONS_PER_REQUEST)
    for api in (leader_and_isr, stop_replica, update_metadata):
        monkeypatch.setattr(api, "PART", PART)
    return found


def test_many_partitions_come_and_go_in_several_commands(tmp_path: Path, sizes: list[int]) -> None:
    async def scenario(three: Three) -> None:
        await three.create("first", PARTITIONS, 2)
        await eventually(lambda: all_know(three, "first"), "all know it")
        assert 0 < max(sizes) <= MAX_PARTITIONS_PER_REQUEST

        # A new controller, whose first UpdateMetadata names a part of the brokers' metadata.
        controller = three.controller
        del three.brokers[controller.id]
        await controller.stop()
        await eventually(
            lambda: any(one.controller for one in three.brokers.values()), "a new controller"
        )
        await three.create("second", PARTITIONS, 2)
        await eventually(lambda: all_know(three, "second"), "all know it")
        assert all_know(three, "first")
        await eventually(
            lambda: all(len(one.metadata.brokers) == 2 for one in three.brokers.values()),
            "all know who is left",
        )

        # A new broker without metadata.
        await three.start(controller.id)
        await eventually(
            lambda: all_know(three, "first") and all_know(three, "second"), "it knows everything"
        )
        topics = [DeleteTopicState(name=one, topic_id=ZERO_UUID) for one in ("first", "second")]
        await three.ask(
            three.controller, DeleteTopicsRequest(topics=topics, topic_names=[], timeout_ms=60_000)
        )
        await eventually(
            lambda: not three.hosted("first") and not three.hosted("second"), "all is gone"
        )
        await eventually(
            lambda: not any(one.metadata.topics for one in three.brokers.values()), "for all"
        )

    play(tmp_path, scenario)
