"""Brokers as processes, each with its own settings and all others at their defaults.

Two brokers of one cluster are the instrument of these tests: broker 1 has the setting, broker 2 has
not, and both do the same work. What only broker 1 shows is the effect of the setting.
"""

from __future__ import annotations

import itertools
import select
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from holdfast.cluster import Client
from holdfast.cluster.client.admin import create_topic
from holdfast.cluster.client.client import Address, Connection, UnreachableError
from holdfast.cluster.processes.ports import HOST, Port
from holdfast.cluster.processes.processes import BrokerProcess, broker_command
from holdfast.cluster.testserver import line_client
from holdfast.model import ErrorCode
from holdfast.protocol import Request, Response
from holdfast.protocol.messages.configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from holdfast.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from holdfast.protocol.records import (
    BatchOptions,
    NewRecord,
    RecordBatchHeader,
    batches,
    build_batch,
)
from tests.support.waiting import DEADLINE_S, wait_until

PATIENCE_S: Final = 60.0
BY_NAME: Final = 12
STARTED: Final = " event=started "
NAMES: Final = itertools.count(1)
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1

Settings = Mapping[str, str]
Answer = TypeVar("Answer", bound=Response)


class Sent(NamedTuple):
    """A broker's answer to a Produce request."""

    error: ErrorCode
    offset: int


class Server:
    """One broker process."""

    def __init__(self, folder: Path, number: int, settings: Settings) -> None:
        self.number = number
        self.folder = folder
        self._port = Port()
        self.port = self._port.number
        self.log_dir = folder / f"logs-{number}"
        self.control = folder / f"{number}.sock"
        self.output = folder / f"{number}.log"
        self._process: BrokerProcess | None = None
        self._connection: Connection | None = None
        own = {
            "node.id": str(number),
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": str(self.log_dir),
            "holdfast.store": str(folder / "store.sqlite"),
            "holdfast.control": str(self.control),
        }
        self.settings = {
            name: value.replace("{port}", str(self.port)).replace("{folder}", str(folder))
            for name, value in (own | dict(settings)).items()
            if value != UNSET
        }

    # The process.

    def begin(self) -> None:
        """Start it without waiting."""
        self.control.unlink(missing_ok=True)
        file = self.folder / f"{self.number}.properties"
        text = "".join(f"{name}={value}\n" for name, value in self.settings.items())
        file.write_text(text, encoding="utf-8")
        self._process = BrokerProcess(broker_command(file), self.output)

    def start(self) -> None:
        """Start it; returns when it serves."""
        began = len(self.said())
        self.begin()
        wait_until(lambda: self._has_started(began), f"broker {self.number} has started")

    def _has_started(self, began: int) -> bool:
        assert self.process.exit_code is None, self.process.last_words()
        return STARTED in self.said()[began:]

    @property
    def process(self) -> BrokerProcess:
        assert self._process is not None, "it was never started"
        return self._process

    @property
    def is_running(self) -> bool:
        return self._process is not None and self.process.exit_code is None

    def said(self) -> str:
        """The broker's log."""
        return self.output.read_text(encoding="utf-8") if self.output.exists() else ""

    def pause(self) -> None:
        """SIGSTOP: it answers nothing, and its connections stay open."""
        self.process.signal(signal.SIGSTOP)
        wait_until(self.process.id.is_paused, "the broker stands still")

    def resume(self) -> None:
        self.process.signal(signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM: ask it to stop; returns immediately."""
        self.process.signal(signal.SIGTERM)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self.hang_up()
        self.resume()
        self.terminate()
        assert self.process.wait(DEADLINE_S), "it has not stopped"

    def kill(self) -> None:
        """SIGKILL, and wait."""
        self.hang_up()
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        self.kill()
        self._port.release()

    def status(self) -> dict[str, Any]:
        """The status from the control socket."""
        response: dict[str, Any] = self.order("status")
        return response

    def order(self, call: str, **fields: object) -> Any:
        """A call to the control socket."""
        return line_client.ask(self.control, {"call": call, **fields}, PATIENCE_S)

    def replica(self, topic: str, partition: int = 0) -> dict[str, Any]:
        """The status of the broker's replica of a partition."""
        response: dict[str, Any] = self.status()["partitions"][f"{topic}-{partition}"]
        return response

    # Requests.

    def connect(self) -> Connection:
        """A new connection; the caller closes it."""
        return Connection(Address(HOST, self.port), PATIENCE_S)

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, request: Request, kind: type[Answer], most: int | None = None) -> Answer:
        """One request to this broker, and its answer."""
        if self._connection is None or not self._connection.is_open:
            self._connection = self.connect()
        return ask_on(self._connection, request, kind, most)

    def send(
        self,
        topic: str,
        records: Sequence[NewRecord],
        options: BatchOptions | None = None,
        *,
        partition: int = 0,
        acks: int = -1,
    ) -> Sent:
        """One batch to this broker."""
        made = build_batch(records) if options is None else build_batch(records, options)
        data = PartitionProduceData(index=partition, records=made)
        response = TopicProduceData(name=topic, partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[response])
        answer = self.ask(request, ProduceResponse, BY_NAME)
        [one] = answer.responses[0].partition_responses
        return Sent(ErrorCode(one.error_code), one.base_offset)

    # Files.

    def files(self, topic: str, pattern: str, partition: int = 0) -> list[Path]:
        """Files of a partition's log, in their order."""
        return sorted((self.log_dir / f"{topic}-{partition}").glob(pattern))

    def segments(self, topic: str) -> int:
        return len(self.files(topic, "*.log"))

    def headers(self, topic: str) -> list[RecordBatchHeader]:
        """The batches in its files."""
        found: list[RecordBatchHeader] = []
        wait_until(lambda: self._read_headers(topic, found), "the files stay while they are read")
        return found

    def _read_headers(self, topic: str, found: list[RecordBatchHeader]) -> bool:
        """False if the cleaner has replaced a file meanwhile."""
        found.clear()
        try:
            for file in self.files(topic, "*.log"):
                found += [one.header for one in batches(file.read_bytes(), partial_end=True)]
        except FileNotFoundError:
            return False
        return True


UNSET: Final = "(unset)"
"""As a value: leave out what the harness would set."""


def ask_on(
    connection: Connection, request: Request, kind: type[Answer], most: int | None = None
) -> Answer:
    """One request on this connection."""
    answer = connection.send(request, connection.version_of(type(request), most))
    assert isinstance(answer, kind)
    return answer


class Servers:
    """One cluster."""

    def __init__(self, folder: Path, *settings: Settings) -> None:
        """One broker per mapping, numbered from 1."""
        folder.mkdir(parents=True, exist_ok=True)
        self.all = {
            number: Server(folder, number, one) for number, one in enumerate(settings, start=1)
        }

    def __getitem__(self, number: int) -> Server:
        return self.all[number]

    def start(self, *, controller: int | None = None) -> None:
        """Start all; each has the metadata of the others. The first to start is the controller."""
        order = sorted(self.all, key=lambda number: number != controller)
        if controller is not None:
            self.all[order[0]].start()
            order = order[1:]
        for number in order:
            self.all[number].begin()
        wait_until(self._is_whole, "all brokers know each other", 2 * DEADLINE_S)

    def _is_whole(self) -> bool:
        return all(self._knows_all(one) for one in self.all.values())

    def _knows_all(self, server: Server) -> bool:
        assert server.is_running, server.process.last_words()
        try:
            known = self.metadata(server)
        except UnreachableError:
            server.hang_up()
            return False
        found = {one.node_id for one in known.brokers}
        return len(found) == len(self.all) and known.controller_id in found

    def close(self) -> None:
        for server in self.all.values():
            server.close()

    def metadata(self, server: Server, *topics: str) -> MetadataResponse:
        """This broker's metadata."""
        with Client([(HOST, server.port)], timeout_s=PATIENCE_S) as client:
            return client.metadata(topics)

    def controller(self) -> Server:
        """The controller, in broker 1's metadata."""
        return self.all[self.metadata(self.all[1]).controller_id]

    def client(self) -> Client:
        """Close it."""
        running = [one for one in self.all.values() if one.is_running]
        return Client([(HOST, one.port) for one in running], timeout_s=PATIENCE_S)

    # Topics.

    def topic(self, *replicas: int, config: Settings | None = None, partitions: int = 1) -> str:
        """A new topic whose partitions are on these brokers; the first leads."""
        name = f"topic-{next(NAMES)}"
        assignment = dict.fromkeys(range(partitions), replicas)
        with self.client() as client:
            create_topic(client, name, config=config, assignment=assignment)
        for number in range(partitions):
            self.wait_leader(name, replicas[0], number)
        return name

    def partition(self, topic: str, number: int = 0, at: int = 1) -> MetadataResponsePartition:
        """A partition in one broker's metadata."""
        [found] = self.metadata(self.all[at], topic).topics
        assert not found.error_code, ErrorCode(found.error_code)
        return next(one for one in found.partitions if one.partition_index == number)

    def wait_leader(self, topic: str, leader: int, number: int = 0) -> None:
        """Wait until the broker leads, and broker 1 has that in its metadata."""

        def leads() -> bool:
            response = self.all[leader].status()["partitions"].get(f"{topic}-{number}")
            return response is not None and response["role"] == "leader"

        wait_until(leads, f"broker {leader} leads {topic}-{number}")

    # Dynamic settings.

    def alter(self, kind: int, name: str, setting: str, value: str | None) -> None:
        """Set, or with None delete, one setting of a topic or a broker ("" for all)."""
        operation = DELETE if value is None else SET
        config = IncrementalAlterConfigsAlterableConfig(
            name=setting, config_operation=operation, value=value
        )
        resource = IncrementalAlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[config]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        with self.client() as client:
            [response] = client.ask_controller(request, IncrementalAlterConfigsResponse).responses
        assert not response.error_code, response.error_message

    def settle(self, number: int) -> None:
        """Wait until a broker has read all changed settings: it reads all together."""
        probe, server = self.topic(number), self.all[number]
        self.alter(TOPIC, probe, "max.message.bytes", "1")

        def has_read() -> bool:
            return server.send(probe, [record()], acks=1).error is ErrorCode.MESSAGE_TOO_LARGE

        wait_until(has_read, f"broker {number} has read the settings")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def record(value: bytes = b"value", key: bytes | None = None, age_ms: int = 0) -> NewRecord:
    """A record with a timestamp this long ago."""
    return NewRecord(value, key, now_ms() - age_ms)


def is_readable(connection: socket.socket) -> bool:
    """Whether an answer, or the end of the connection, has arrived."""
    return bool(select.select([connection], [], [], 0)[0])
