"""Three whole brokers in one event loop, on real sockets, a real disk and a real store."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from holdfast.broker.clock import Clock
from holdfast.broker.log_lines import LogLines
from holdfast.broker.node import Broker
from holdfast.broker.settings import Layers
from holdfast.coordination import EmbeddedStore
from holdfast.protocol import APIS, Request, Response, decode_response, encode_request
from holdfast.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from holdfast.storage import Disks, RealDisk
from tests.support.waiting import eventually

CLIENT = "a test"


class Three:
    """The brokers, and a client of any of them."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._settings = dict(settings or {})
        self.lines = io.StringIO()
        self.brokers: dict[int, Broker] = {}
        self.tasks: list[asyncio.Future[None]] = []

    def make(self, number: int, disks: Disks | None = None) -> Broker:
        """A broker that is not started, in its own directory if none is given."""
        static = {
            "node.id": str(number),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(self._folder / f"broker-{number}"),
            "holdfast.store": str(self._folder / "store.sqlite"),
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "broker.rack": f"rack-{number}",
            **self._settings,
        }
        layers = Layers(static=static)
        clock, log = Clock(asyncio.get_running_loop()), LogLines(number, self.lines)
        store = EmbeddedStore(self._folder / "store.sqlite")
        if disks is None:
            directory = self._folder / f"broker-{number}"
            directory.mkdir(exist_ok=True)
            disks = {str(directory): RealDisk(directory)}
        return Broker(clock, layers, disks, store, log, random.Random(number))

    async def start(self, number: int) -> Broker:
        broker = self.make(number)
        await broker.start()
        self.brokers[number] = broker
        return broker

    async def start_all(self) -> None:
        for number in (1, 2, 3):
            await self.start(number)
        await eventually(self.know_each_other, "all brokers know each other")

    def know_each_other(self) -> bool:
        return all(len(one.metadata.brokers) == 3 for one in self.brokers.values())

    @property
    def controller(self) -> Broker:
        return next(one for one in self.brokers.values() if one.controller is not None)

    @property
    def other(self) -> Broker:
        """A broker that is not the controller."""
        return next(one for one in self.brokers.values() if one.controller is None)

    async def create(self, name: str, partitions: int = 1, replicas: int = 3) -> None:
        """Create a topic; returns when the brokers host it."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=[],
            configs=[],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
        answer = await self.ask(self.controller, request)
        assert [one.error_code for one in answer.topics] == [0]
        hosted = partitions * replicas
        await eventually(lambda: self.hosted(name) == hosted, f"the brokers host {name}")

    def hosted(self, name: str) -> int:
        """How many replicas of a topic's partitions the brokers have."""
        names = [one for broker in self.brokers.values() for one in broker.replicas.partitions]
        return sum(one.topic == name for one in names)

    async def ask(self, broker: Broker, request: Request, version: int | None = None) -> Any:
        """Send one request as a client; returns the response."""
        api = APIS[request.API_KEY]
        version = api.advertised[-1] if version is None else version
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.endpoint.port)
        try:
            writer.writelines(encode_request(request, version, correlation_id=7, client_id=CLIENT))
            size = int.from_bytes(await reader.readexactly(4), "big")
            frame = bytearray(await reader.readexactly(size))
        finally:
            writer.close()
        response: Response
        _, response = decode_response(frame, api, version)
        return response


def play(
    folder: Path,
    scenario: Callable[[Three], Coroutine[Any, Any, None]],
    settings: Mapping[str, str] | None = None,
) -> None:
    """Run a scenario with three brokers, which are stopped at its end."""

    async def run() -> None:
        three = Three(folder, settings)
        try:
            await three.start_all()
            await scenario(three)
        finally:
            for broker in three.brokers.values():
                await broker.stop()
        assert "Traceback" not in three.lines.getvalue(), three.lines.getvalue()

    asyncio.run(run())
