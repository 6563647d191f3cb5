"""Automatic topic creation."""

from __future__ import annotations

from typing import Final

from holdfast.broker.log_lines import LogLines
from holdfast.broker.metadata.controller_channel import ControllerChannel
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.metadata.topic_names import OFFSETS_TOPIC
from holdfast.model import ErrorCode
from holdfast.protocol import Response
from holdfast.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

CREATE_VERSION: Final = 7
TIMEOUT_MS: Final = 10_000


class AutoCreation:
    """Asks the controller to create topics; one request per topic at a time."""

    def __init__(self, controller: ControllerChannel, configs: Configs, log: LogLines) -> None:
        self._controller = controller
        self._configs = configs
        self._log = log
        self._asked: dict[str, None] = {}

    def create(self, names: list[str]) -> None:
        """Request topics with the cluster's defaults; clients retry until they exist."""
        fresh = [name for name in names if name not in self._asked]
        if not fresh or not self._controller.is_open:
            return
        self._asked.update(dict.fromkeys(fresh))
        request = CreateTopicsRequest(
            topics=[self._topic(name) for name in fresh], timeout_ms=TIMEOUT_MS
        )

        def answered(response: Response | None) -> None:
            for name in fresh:
                self._asked.pop(name, None)
            if isinstance(response, CreateTopicsResponse):
                self._report(response)

        self._controller.send(request, CREATE_VERSION, answered)

    def _report(self, response: CreateTopicsResponse) -> None:
        """Log the topics that were not created. Clients retry; the log counts repetitions."""
        for one in response.topics:
            error = ErrorCode(one.error_code)
            if error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                why = one.error_message or error.name
                self._log.warning("topic not created", topic=one.name, reason=why)

    def _topic(self, name: str) -> CreatableTopic:
        settings = self._configs.settings
        if name != OFFSETS_TOPIC:
            return CreatableTopic(
                name=name, num_partitions=-1, replication_factor=-1, assignments=[], configs=[]
            )
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        }
        return CreatableTopic(
            name=name,
            num_partitions=settings.offsets_topic_num_partitions,
            # Not fewer replicas because few brokers are up now: it would stay so (KIP-115).
            replication_factor=settings.offsets_topic_replication_factor,
            assignments=[],
            configs=[CreatableTopicConfig(name=key, value=text) for key, text in configs.items()],
        )
