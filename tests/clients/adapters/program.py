"""Clients in other languages: a program that reads one JSON task per line and answers each.

The tasks are the methods of `Client`; go/main.go describes the format.
"""

from __future__ import annotations

import json
import subprocess
import threading
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.model import ErrorCode
from tests.clients.client import (
    Client,
    ClusterSeen,
    GroupSeen,
    How,
    Member,
    Placed,
    Read,
    Record,
    RefusedError,
)


class ProgramClient(Client):
    """A subclass names the command of the program."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [*self.command(), *bootstrap.split(",")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    @classmethod
    def command(cls) -> Sequence[str]:
        """The program, ready to run; skips the test with a reason if it cannot be built."""
        raise NotImplementedError

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def ask(self, do: str, **task: Any) -> Any:
        """Send one task; RefusedError if a broker refused."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps({"do": do, **task}).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        assert line, f"the program ended while it was asked to {do}"
        answer = json.loads(line)
        if "error" not in answer:
            return answer["ok"]
        assert answer["error"] > 0, answer["message"]
        raise RefusedError(ErrorCode(answer["error"]).name, answer["message"])

    # Records.

    def produce(
        self, topic: str, partition: int, records: Sequence[Record], how: How
    ) -> list[int] | None:
        offsets: list[int] | None = self.ask(
            "produce",
            topic=topic,
            partition=partition,
            compression=how.compression,
            acks=how.acks,
            idempotent=how.is_idempotent,
            records=[_sent(one) for one in records],
        )
        return offsets

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Read]:
        got = self.ask("consume", topic=topic, partition=partition, start=start, count=count)
        return [
            Read(
                one["offset"],
                one["timestamp"],
                _bytes(one["key"]),
                _bytes(one["value"]),
                tuple((each["name"], _bytes(each["value"])) for each in one["headers"]),
            )
            for one in got
        ]

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        offset: int | None = self.ask(
            "offset_at", topic=topic, partition=partition, timestamp=timestamp
        )
        return offset

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        start, end = self.ask("offsets", topic=topic, partition=partition)
        return start, end

    # Topics.

    def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        response = {"topic": topic, "count": partitions, "replicas": replicas}
        self.ask("create_topic", **response, configs=dict(configs))

    def delete_topic(self, topic: str) -> None:
        self.ask("delete_topic", topic=topic)

    def create_partitions(self, topic: str, total: int) -> None:
        self.ask("create_partitions", topic=topic, count=total)

    def topics(self) -> dict[str, dict[int, Placed]]:
        return {
            name: {
                int(index): Placed(one["leader"], tuple(one["replicas"]), tuple(one["isr"]))
                for index, one in sorted(partitions.items())
            }
            for name, partitions in self.ask("topics").items()
        }

    def topic_configs(self, topic: str) -> dict[str, str]:
        values: dict[str, str] = self.ask("topic_configs", topic=topic)
        return values

    def alter_topic_configs(
        self, topic: str, put: Mapping[str, str], drop: Sequence[str] = ()
    ) -> None:
        self.ask("alter_topic_configs", topic=topic, configs=dict(put), drop=list(drop))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self.ask("delete_records", topic=topic, partition=partition, start=before)

    # The cluster.

    def cluster(self) -> ClusterSeen:
        response = self.ask("cluster")
        brokers = {int(broker): port for broker, port in response["brokers"].items()}
        return ClusterSeen(response["id"], response["controller"], brokers)

    def log_sizes(self, topic: str) -> dict[tuple[int, int], int]:
        sizes = self.ask("log_sizes", topic=topic)
        return {(broker, partition): size for broker, partition, size in sizes}

    def elect(self, topic: str, partition: int) -> None:
        self.ask("elect", topic=topic, partition=partition)

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        self.ask("reassign", topic=topic, partition=partition, brokers=list(replicas))

    # Groups.

    def join(self, group: str, topic: str) -> Member:
        return _ProgramMember(self, self.ask("join", group=group, topic=topic))

    def groups(self) -> set[str]:
        return set(self.ask("groups"))

    def group(self, group: str) -> GroupSeen:
        response = self.ask("group", group=group)
        return GroupSeen(response["state"], response["members"])

    def committed(self, group: str, topic: str) -> dict[int, int]:
        response = self.ask("committed", group=group, topic=topic)
        return {int(partition): offset for partition, offset in sorted(response.items())}

    def delete_group(self, group: str) -> None:
        self.ask("delete_group", group=group)


class _ProgramMember(Member):
    """A consumer that runs inside the program."""

    def __init__(self, program: ProgramClient, number: int) -> None:
        self._program = program
        self._number = number
        self._last: list[bytes] | None = None

    def assignment(self) -> set[int]:
        return set(self._program.ask("member", member=self._number)["owned"])

    def values(self) -> list[bytes]:
        if self._last is not None:
            return self._last
        values = self._program.ask("member", member=self._number)["values"]
        return [b64decode(value) for value in values or ()]

    def close(self) -> None:
        self._program.ask("leave", member=self._number)
        self._last = self.values()


def _sent(record: Record) -> dict[str, Any]:
    return {
        "key": _text(record.key),
        "value": _text(record.value),
        "timestamp": record.timestamp,
        "headers": [{"name": name, "value": _text(value)} for name, value in record.headers],
    }


def _text(part: bytes | None) -> str | None:
    return None if part is None else b64encode(part).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
