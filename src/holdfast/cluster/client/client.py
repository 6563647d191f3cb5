"""A small blocking Kafka client on Holdfast's own protocol code, so that tests need no library.

One connection per broker, one request at a time, one attempt per call; `retries` repeats attempts
while the cluster changes. An error code in a response raises `KafkaError`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Self, TypeVar

from holdfast.cluster.errors import ClusterError
from holdfast.model import ErrorCode
from holdfast.protocol import (
    APIS,
    MalformedMessage,
    Request,
    Response,
    decode_response,
    encode_request,
)
from holdfast.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from holdfast.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)

CLIENT_ID: Final = "holdfast-cluster"
TIMEOUT_S: Final = 5.0
LONGEST_FRAME: Final = 256 * 1024 * 1024

R = TypeVar("R", bound=Response)


QUESTIONS: Final = (ApiVersionsRequest, MetadataRequest)
"""Sent before the real request. If their answer is lost, nothing was carried out."""


class KafkaError(ClusterError):
    """A broker answered with an error."""

    def __init__(self, what: str, code: int, message: str | None = None) -> None:
        try:
            self.code = ErrorCode(code)
        except ValueError:
            self.code = ErrorCode.UNKNOWN_SERVER_ERROR
        super().__init__(f"{what}: {self.code.name}{f' ({message})' if message else ''}")


class UnreachableError(ClusterError):
    """A broker could not be reached."""


class UnansweredError(UnreachableError):
    """A broker received a request and its answer was lost: it may have carried out the request."""


def check(what: str, code: int, message: str | None = None) -> None:
    """Raise unless the code is NONE."""
    if code:
        raise KafkaError(what, code, message)


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int


def addresses(bootstrap: str) -> list[Address]:
    """HOST:PORT[,HOST:PORT…]; ClusterError names the part that is something else."""
    found = []
    for part in bootstrap.split(","):
        host, colon, port = part.strip().rpartition(":")
        if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ClusterError(f"{part.strip()!r} is not HOST:PORT")
        found.append(Address(host.strip("[]"), int(port)))
    return found


class Connection:
    """One broker."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        self.address = address
        self._timeout_s = timeout_s
        try:
            self._socket = socket.create_connection(address, timeout_s)
        except OSError as error:
            where = f"{address.host}:{address.port}"
            raise UnreachableError(f"no broker at {where}: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next = 0
        self._versions: dict[int, range] = {}

    def version_of(self, request: type[Request], most: int | None = None) -> int:
        """The newest version that both sides support, at most `most`."""
        if not self._versions:
            answer = self.send(ApiVersionsRequest(), 0)
            assert isinstance(answer, ApiVersionsResponse)
            self._versions = {
                one.api_key: range(one.min_version, one.max_version + 1) for one in answer.api_keys
            }
        api = APIS[request.API_KEY]
        theirs = self._versions.get(api.key, range(0))
        both = [v for v in api.versions if v in theirs and (most is None or v <= most)]
        if not both:
            raise ClusterError(f"the broker at {self.address.port} does not speak {api.name}")
        return max(both)

    def send(self, request: Request, version: int, *, has_answer: bool = True) -> Response | None:
        """Send one request, and return its answer if there is one.

        A broker may use all of the time that the request gives it.
        """
        self._next += 1
        lost = UnreachableError if isinstance(request, QUESTIONS) else UnansweredError
        parts = encode_request(request, version, correlation_id=self._next, client_id=CLIENT_ID)
        given_s = getattr(request, "timeout_ms", 0) / 1000
        try:
            self._socket.settimeout(self._timeout_s + given_s)
            self._socket.sendall(b"".join(parts))
            if not has_answer:
                return None
            frame = self._receive(int.from_bytes(self._receive(4), "big"))
        except OSError as error:
            self.close()
            raise lost(f"the broker at {self.address.port} is gone: {error}") from None
        try:
            return decode_response(frame, APIS[request.API_KEY], version)[1]
        except MalformedMessage as error:
            self.close()
            where = f"{self.address.host}:{self.address.port}"
            raise lost(f"{where} does not answer as a Kafka broker: {error}") from None

    def _receive(self, size: int) -> bytes:
        if size > LONGEST_FRAME:
            raise ConnectionError(f"an answer of {size} bytes")
        received = bytearray()
        while len(received) < size:
            piece = self._socket.recv(size - len(received))
            if not piece:
                raise ConnectionError("hung up")
            received += piece
        return bytes(received)

    @property
    def is_open(self) -> bool:
        """False also if the broker has closed the connection: brokers close idle connections."""
        if self._socket.fileno() < 0:
            return False
        self._socket.setblocking(False)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        # No request is in flight, so the only thing to receive is the end of the connection.
        self.close()
        return False

    def close(self) -> None:
        self._socket.close()


class Client:
    """Finds brokers by any of the given addresses."""

    def __init__(
        self, bootstrap: Sequence[tuple[str, int]], *, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._bootstrap = [Address(*one) for one in bootstrap]
        self._timeout_s = timeout_s
        self._connections: dict[Address, Connection] = {}
        self._brokers: dict[int, Address] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def connection(self, address: Address) -> Connection:
        """An open connection, kept for the next request."""
        connection = self._connections.get(address)
        if connection is None or not connection.is_open:
            connection = self._connections[address] = Connection(address, self._timeout_s)
        return connection

    def ask_any(self, request: Request, expected: type[R], *, most: int | None = None) -> R:
        """Ask the first broker that can be reached."""
        failures: list[str] = []
        for address in (*self._bootstrap, *self._brokers.values()):
            try:
                connection = self.connection(address)
                answer = connection.send(request, connection.version_of(type(request), most))
            except UnreachableError as error:
                failures.append(error.message)
                continue
            assert isinstance(answer, expected)
            return answer
        raise UnreachableError("; ".join(dict.fromkeys(failures)) or "no broker is known")

    def ask(
        self, broker: int, request: Request, expected: type[R], *, most: int | None = None
    ) -> R:
        """Ask one broker."""
        connection = self._connection_to(broker)
        answer = connection.send(request, connection.version_of(type(request), most))
        assert isinstance(answer, expected)
        return answer

    def _connection_to(self, broker: int) -> Connection:
        """Uses the address in the last metadata; refreshes it if the broker is not in it."""
        if broker not in self._brokers:
            self.metadata([])
        if broker not in self._brokers:
            raise UnreachableError(f"there is no live broker {broker}")
        try:
            return self.connection(self._brokers[broker])
        except UnreachableError:
            del self._brokers[broker]
            raise

    def ask_controller(self, request: Request, expected: type[R], *, most: int | None = None) -> R:
        """Ask the controller that the last metadata names."""
        controller = self.metadata([]).controller_id
        if controller < 0:
            raise UnreachableError("there is no controller just now")
        return self.ask(controller, request, expected, most=most)

    def metadata(self, topics: Iterable[str] | None = None) -> MetadataResponse:
        """Metadata of some topics, or of all; never creates a topic."""
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        answer = self.ask_any(request, MetadataResponse)
        for broker in answer.brokers:
            self._brokers[broker.node_id] = Address(broker.host, broker.port)
        return answer

    def partition(self, topic: str, partition: int) -> MetadataResponsePartition:
        """Leader and replicas of a partition; KafkaError if it is unknown."""
        [found] = self.metadata([topic]).topics
        check(topic, found.error_code)
        for one in found.partitions:
            if one.partition_index == partition:
                return one
        raise KafkaError(f"{topic}-{partition}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def newest_partition(self, topic: str, partition: int) -> MetadataResponsePartition:
        """The same, from the address that returns the newest leader epoch."""
        found: list[MetadataResponsePartition] = []
        failures: list[ClusterError] = []
        for address in self._bootstrap:
            try:
                with Client([address], timeout_s=self._timeout_s) as one:
                    found.append(one.partition(topic, partition))
            except (KafkaError, UnreachableError) as error:
                failures.append(error)
        if not found:
            raise failures[0] if failures else UnreachableError("no broker can be reached")
        return max(found, key=lambda one: one.leader_epoch)

    def send_unanswered(self, broker: int, request: Request, *, most: int | None = None) -> None:
        """Send with acks=0: there is no answer."""
        connection = self._connection_to(broker)
        connection.send(request, connection.version_of(type(request), most), has_answer=False)
