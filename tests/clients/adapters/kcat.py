"""kcat: no admin client, and an older librdkafka."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import IO, Any, ClassVar

from tests.clients.client import (
    Client,
    ClusterSeen,
    Headers,
    How,
    Limits,
    Member,
    Placed,
    Read,
    Record,
)
from tests.clients.tools import kcat

WAIT_S = 60.0
KEY_ENDS, RECORD_ENDS = "<key|", "<record|"
FORMAT = r"%o %T %K %S %h\n%k%s"
REBALANCED = re.compile(r"rebalanced .*?: (assigned|revoked):? ?(.*)")
NO_ADMIN = "kcat is no administrator"


class KcatClient(Client):
    """Producer, consumer, group member, and queries of offsets and metadata."""

    limits: ClassVar = Limits(timestamps=False, empties=False, headers=False, null_headers=False)
    lacks: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            "create_and_delete_topic",
            "refuse_topics",
            "create_partitions",
            "topic_configs",
            "drop_topic_configs",
            "delete_records",
            "describe_log_dirs",
            "elect_leaders",
            "reassign_partitions",
            "group_admin",
            "delete_group",
        ),
        NO_ADMIN,
    )

    def produce(
        self, topic: str, partition: int, records: Sequence[Record], how: How
    ) -> list[int] | None:
        common = ["-P", "-t", topic, "-p", str(partition), "-z", how.compression, "-Z"]
        common += ["-K", KEY_ENDS, "-D", RECORD_ENDS, "-X", f"acks={how.acks}"]
        common += ["-X", f"enable.idempotence={str(how.is_idempotent).lower()}"]
        for headers, together in groupby(records, key=lambda one: one.headers):
            self._run(*common, *_header_options(headers), given=b"".join(_given(together)))
        return None

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Read]:
        place = ("-t", topic, "-p", str(partition), "-o", str(start), "-c", str(count))
        output = self._run("-C", "-q", *place, "-f", FORMAT)
        return list(_parsed(output))

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        output = self._run("-Q", "-t", f"{topic}:{partition}:{timestamp}").decode()
        offset = int(output.split("offset ")[1])
        return offset if offset >= 0 else None

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        start, end = self.offset_at(topic, partition, -2), self.offset_at(topic, partition, -1)
        assert start is not None
        assert end is not None
        return start, end

    def topics(self) -> dict[str, dict[int, Placed]]:
        return {
            topic["topic"]: {
                one["partition"]: Placed(one["leader"], _ids(one["replicas"]), _ids(one["isrs"]))
                for one in topic["partitions"]
            }
            for topic in self._metadata()["topics"]
        }

    def cluster(self) -> ClusterSeen:
        output = self._metadata()
        brokers = {one["id"]: int(one["name"].rpartition(":")[2]) for one in output["brokers"]}
        return ClusterSeen(None, output["controllerid"], brokers)

    def join(self, group: str, topic: str) -> Member:
        return _KcatMember(self._command("-G", group, topic, "-u", "-f", r"%s\n"))

    def _metadata(self) -> Any:
        return json.loads(self._run("-L", "-J"))

    def _command(self, *options: str) -> list[str]:
        patience = ("-X", "auto.offset.reset=earliest", "-X", "heartbeat.interval.ms=200")
        return [kcat().path, "-b", self.bootstrap, *patience, *options]

    def _run(self, *options: str, given: bytes = b"") -> bytes:
        done = subprocess.run(
            self._command(*options),
            input=given,
            capture_output=True,
            check=False,
            timeout=WAIT_S,
            env=kcat().environment,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


class _KcatMember(Member):
    """A process; its stderr reports rebalances."""

    def __init__(self, command: Sequence[str]) -> None:
        self._values: list[bytes] = []
        self._owned: set[int] = set()
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=kcat().environment
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._threads = [
            threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._watch, args=(self._process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, lines: IO[bytes]) -> None:
        for line in lines:
            self._values.append(line.rstrip(b"\n"))

    def _watch(self, lines: IO[bytes]) -> None:
        for line in lines:
            if found := REBALANCED.search(line.decode()):
                named = {int(number) for number in re.findall(r"\[(\d+)\]", found[2])}
                self._owned = named if found[1] == "assigned" else set()

    def assignment(self) -> set[int]:
        return set(self._owned)

    def values(self) -> list[bytes]:
        return list(self._values)

    def close(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(WAIT_S)
        for thread in self._threads:
            thread.join(WAIT_S)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


def _ids(nodes: Sequence[dict[str, int]]) -> tuple[int, ...]:
    return tuple(node["id"] for node in nodes)


def _header_options(headers: Headers) -> list[str]:
    return [word for name, value in headers for word in ("-H", f"{name}={(value or b'').decode()}")]


def _given(records: Iterator[Record]) -> Iterator[bytes]:
    """Records in kcat's input format; -Z makes an empty value a null one."""
    for one in records:
        if one.key is not None:
            yield one.key + KEY_ENDS.encode()
        yield (one.value or b"") + RECORD_ENDS.encode()


def _parsed(output: bytes) -> Iterator[Read]:
    """Parses FORMAT: a line of numbers and headers, then key and value, by their lengths."""
    at = 0
    while at < len(output):
        line_end = output.index(b"\n", at)
        offset, timestamp, key_length, length, headers = output[at:line_end].decode().split(" ", 4)
        key_end = line_end + 1 + max(int(key_length), 0)
        at = key_end + max(int(length), 0)
        key = output[line_end + 1 : key_end] if int(key_length) >= 0 else None
        value = output[key_end:at] if int(length) >= 0 else None
        pairs = [pair.split("=", 1) for pair in headers.split(",") if pair]
        named = tuple((name, text.encode()) for name, text in pairs)
        yield Read(int(offset), int(timestamp), key, value, named)
