"""DeleteRecords on whole brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.support.waiting import eventually
from tests.unit.broker.fetch.test_leader_hints import TOPIC, apart, produce
from tests.unit.broker.test_admin_apis import create, new_topic
from tests.unit.broker.three import Three, play

pytestmark = pytest.mark.slow


def test_followers_that_have_nothing_to_copy_move_their_start_too(tmp_path: Path) -> None:
    """The answer to a parked fetch has only partitions with updates; a moved start is one."""

    async def scenario(three: Three) -> None:
        assert await create(three, new_topic(TOPIC, 1)) == [(TOPIC, 0)]
        leader, _ = apart(three)
        for _ in range(4):
            response = await three.ask(leader, produce(b"", 12), 12)
            assert response.responses[0].partition_responses[0].error_code == 0
        logs = [one.replicas.partitions[TopicPartition(TOPIC, 0)] for one in three.brokers.values()]

        def is_settled() -> bool:
            return all(one.replica.log.high_watermark == 4 for one in logs)

        await eventually(is_settled, "all followers know the high watermark")
        asked = [DeleteRecordsPartition(partition_index=0, offset=3)]
        topics = [DeleteRecordsTopic(name=TOPIC, partitions=asked)]
        response = await three.ask(leader, DeleteRecordsRequest(topics=topics, timeout_ms=10_000))
        [result] = response.topics[0].partitions
        assert (ErrorCode(result.error_code), result.low_watermark) == (ErrorCode.NONE, 3)
        assert [one.log.log_start_offset for one in logs] == [3, 3, 3]

    play(tmp_path, scenario)
