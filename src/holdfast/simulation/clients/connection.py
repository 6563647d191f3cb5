"""Connections of simulated clients to brokers: Kafka's protocol over the simulated network."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

from holdfast.broker.network.frames import FrameReader
from holdfast.model import ErrorCode, TopicPartition
from holdfast.protocol import APIS, Request, Response, decode_response, encode_request
from holdfast.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from holdfast.simulation.network import Address
from holdfast.simulation.virtual_time_loop import SimLoop

METADATA_VERSION: Final = 12
ANSWER_S: Final = 4.0
"""A client closes a connection that has not answered for so long."""
LONGEST_FRAME: Final = 64 * 1024 * 1024

R = TypeVar("R", bound=Response)


class RefusedError(Exception):
    """A broker returned an error code."""

    def __init__(self, code: int) -> None:
        self.code = ErrorCode(code)
        super().__init__(self.code.name)


FAILURES: Final = (OSError, RefusedError)
"""Failures after which a client retries; TimeoutError is an OSError."""


def check(code: int) -> None:
    """Raise RefusedError unless the code is 0."""
    if code:
        raise RefusedError(code)


class Wire(asyncio.BufferedProtocol):
    """One connection; responses arrive in the order of the requests."""

    def __init__(self, loop: SimLoop, name: str) -> None:
        self._loop = loop
        self._name = name
        self._reader = FrameReader(LONGEST_FRAME)
        self._waiting: deque[tuple[int, int, asyncio.Future[Any]]] = deque()
        self._transport: Any = None
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.is_open = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        waiting, self._waiting = self._waiting, deque()
        for _, _, answer in waiting:
            if not answer.done():
                answer.set_exception(exc or ConnectionResetError(104, "hung up"))
                answer.exception()  # Its waiter may be gone; asyncio must not log it.

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # asyncio's signature
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        for frame in self._reader.received(nbytes):
            key, version, answer = self._waiting.popleft()
            response = decode_response(frame, APIS[key], version)[1]
            if not answer.done():
                answer.set_result(response)

    def send(self, request: Request, version: int) -> asyncio.Future[Any]:
        """Write a request; the future gets its response, or an OSError."""
        answer = self._loop.create_future()
        if not self.is_open:
            raise ConnectionResetError(104, "hung up")
        self._waiting.append((request.API_KEY, version, answer))
        parts = encode_request(request, version, correlation_id=0, client_id=self._name)
        self._transport.writelines(parts)
        return answer

    def close(self) -> None:
        """Close the connection; unanswered requests fail."""
        if self.is_open:
            self._transport.abort()


class Leader(NamedTuple):
    """A partition's leader, according to the client's metadata."""

    broker: int
    epoch: int


class Client:
    """One client: its connections and its metadata."""

    def __init__(
        self, loop: SimLoop, name: str, brokers: Mapping[int, Address], rng: Random
    ) -> None:
        self.loop = loop
        self.name = name
        self.rng = rng
        self._brokers = dict(brokers)
        self._wires: dict[tuple[int, str], Wire] = {}
        self._leaders: dict[TopicPartition, Leader] = {}
        self._newest: dict[TopicPartition, int] = {}
        """The newest leader epochs seen; as in real clients, older metadata is ignored."""

    async def wire(self, broker: int, purpose: str = "") -> Wire:
        """An open connection to a broker; OSError if it fails."""
        known = self._wires.get((broker, purpose))
        if known is not None and known.is_open:
            return known
        wire = self._wires[broker, purpose] = Wire(self.loop, self.name)
        host, port = self._brokers[broker]
        connecting = self.loop.create_connection(lambda: wire, host, port)
        await asyncio.wait_for(connecting, ANSWER_S)
        return wire

    async def ask(
        self, broker: int, request: Request, version: int, kind: type[R], purpose: str = ""
    ) -> R:
        """Send one request and return its response; OSError if there is none."""
        wire = await self.wire(broker, purpose)
        try:
            answer = await asyncio.wait_for(wire.send(request, version), ANSWER_S)
        except OSError:
            wire.close()
            raise
        assert isinstance(answer, kind)
        return answer

    def any_broker(self) -> int:
        return self.rng.choice(list(self._brokers))

    async def leader(self, partition: TopicPartition) -> Leader:
        """The leader, from the cache or from any broker; RefusedError if there is none."""
        if partition not in self._leaders:
            topics = [MetadataRequestTopic(name=partition.topic)]
            request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
            broker = self.any_broker()
            answer = await self.ask(broker, request, METADATA_VERSION, MetadataResponse)
            for topic in answer.topics:
                check(topic.error_code)
                for one in topic.partitions:
                    name = TopicPartition(partition.topic, one.partition_index)
                    if one.leader_id >= 0 and one.leader_epoch >= self._newest.get(name, -1):
                        self._newest[name] = one.leader_epoch
                        self._leaders[name] = Leader(one.leader_id, one.leader_epoch)
        if partition not in self._leaders:
            raise RefusedError(ErrorCode.LEADER_NOT_AVAILABLE)
        return self._leaders[partition]

    def forget_leader(self, partition: TopicPartition) -> None:
        """Discard the cached leader."""
        self._leaders.pop(partition, None)
