"""kafkajs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tests.clients.adapters.program import ProgramClient
from tests.clients.client import Limits
from tests.clients.tools import kafkajs


class KafkaJs(ProgramClient):
    """All that kafkajs can do."""

    limits: ClassVar = Limits(null_headers=False)
    lacks: ClassVar[Mapping[str, str]] = {
        "drop_topic_configs": "kafkajs has no IncrementalAlterConfigs",
        "describe_log_dirs": "kafkajs has no DescribeLogDirs",
        "elect_leaders": "kafkajs has no ElectLeaders",
    }

    @classmethod
    def command(cls) -> Sequence[str]:
        return kafkajs()
