"""Automatic topic creation."""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.broker.log_lines import MOST_ALIKE
from holdfast.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.waiting import eventually
from tests.unit.broker.three import Three


def test_topics_that_cannot_be_created_are_not_remembered(tmp_path: Path) -> None:
    """Any client can ask for any number of names."""

    async def run() -> None:
        three = Three(tmp_path)
        broker = await three.start(1)  # Replication factor 3: alone it can create none.
        await eventually(lambda: broker.metadata.controller == 1, "a controller")
        names = [f"topic-{number}" for number in range(3 * MOST_ALIKE)]
        asked = [MetadataRequestTopic(name=name) for name in names]
        await three.ask(broker, MetadataRequest(topics=asked, allow_auto_topic_creation=True))

        def lines() -> int:
            return three.lines.getvalue().count("topic not created")

        await eventually(lambda: lines() > 0, "the answer of the controller")
        assert lines() == MOST_ALIKE
        kept = [one for one in vars(broker.auto_creation).values() if isinstance(one, dict)]
        assert not any(kept)
        await broker.stop()

    asyncio.run(run())
