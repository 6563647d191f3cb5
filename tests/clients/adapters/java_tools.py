"""Kafka's own command-line tools, in one JVM (java/Tools.java); parses their output."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from tests.clients.client import (
    Client,
    ClusterSeen,
    GroupSeen,
    Headers,
    How,
    Limits,
    Member,
    Placed,
    Read,
    Record,
    RefusedError,
)
from tests.clients.tools import java_tools

TOOLS = "org.apache.kafka.tools."
TOPICS = f"{TOOLS}TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
PRODUCER = f"{TOOLS}ConsoleProducer"
CONSUMER = f"{TOOLS}consumer.ConsoleConsumer"
OFFSETS = f"{TOOLS}GetOffsetShell"
DELETE_RECORDS = f"{TOOLS}DeleteRecordsCommand"
CLUSTER = f"{TOOLS}ClusterTool"
LOG_DIRS = f"{TOOLS}LogDirsCommand"
ELECTION = f"{TOOLS}LeaderElectionCommand"
REASSIGN = f"{TOOLS}reassign.ReassignPartitionsCommand"
GROUPS = f"{TOOLS}consumer.group.ConsumerGroupCommand"

NULL = "NULL"
WAIT_MS = "60000"
SHOWN = ("print.timestamp", "print.offset", "print.headers", "print.key")
RECORD = re.compile(r"CreateTime:(\d+)\tOffset:(\d+)\t([^\t]*)\t([^\t]*)\t(.*)")
PARTITION = re.compile(
    r"\tTopic: (\S+)\tPartition: (\d+)\tLeader: (\S+)\tReplicas: (\S+)\tIsr: (\S*)"
)
ENTRY = re.compile(r"  (\S+?)=(.*) sensitive=")
EXCEPTION = re.compile(r"errors\.(\w+?)Exception")
WORDS = {
    "TopicExists": "TOPIC_ALREADY_EXISTS",
    "InvalidConfiguration": "INVALID_CONFIG",
    "InvalidTopic": "INVALID_TOPIC_EXCEPTION",
}
"""Java exceptions whose name differs from their error's."""
TOOLS_OWN = {
    "does not exist as expected": "UNKNOWN_TOPIC_OR_PARTITION",
    "Valid replica already elected": "ELECTION_NOT_NEEDED",
    "ConfigException": "INVALID_CONFIG",
    "Unknown broker id": "INVALID_REPLICA_ASSIGNMENT",
}
"""Messages with which tools report errors in their own words."""


class Done(NamedTuple):
    """The result of a tool."""

    out: str
    err: str
    code: int | None


class JavaTools(Client):
    """The tools only: the tests do not call Kafka's client library."""

    limits: ClassVar = Limits(
        timestamps=False, binary=False, empties=False, headers=False, null_headers=False
    )

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._lock = threading.Lock()
        self._members = 0
        self._process = subprocess.Popen(
            java_tools(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    # Running tools.

    def ask(self, **task: Any) -> Any:
        """Send a task to the driver."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(task).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        assert line, "the JVM has ended"
        return json.loads(line)

    def run(self, tool: str, *words: str, given: str = "") -> Done:
        """Run a tool; RefusedError if it fails."""
        response = self.ask(
            tool=tool, args=[*words, "--bootstrap-server", self.bootstrap], input=given
        )
        said = response["out"] + response["err"]
        assert response["code"] is not None, f"{tool} does not end: {said}"
        done = Done(response["out"], response["err"], response["code"])
        if error := _refusal(said):
            raise RefusedError(error, said)
        assert done.code == 0, said
        return done

    def run_with_file(self, tool: str, option: str, content: Any, *words: str) -> Done:
        """The same for a tool that reads JSON from a file."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(content, file)
            file.flush()
            return self.run(tool, option, file.name, *words)

    # Records.

    def produce(
        self, topic: str, partition: int, records: Sequence[Record], how: How
    ) -> list[int] | None:
        assert partition == 0, "the console producer chooses partitions itself"
        words = ["--topic", topic, "--compression-codec", how.compression]
        properties = (f"acks={how.acks}", f"enable.idempotence={str(how.is_idempotent).lower()}")
        for one in (*properties, "linger.ms=20"):
            words += ["--command-property", one]
        for one in ("parse.key=true", "parse.headers=true", f"null.marker={NULL}"):
            words += ["--reader-property", one]
        self.run(PRODUCER, *words, given="".join(_line(one) for one in records))
        return None

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Read]:
        words = ["--topic", topic, "--partition", str(partition), "--offset", str(start)]
        words += ["--max-messages", str(count), "--timeout-ms", WAIT_MS]
        for name in SHOWN:
            words += ["--formatter-property", f"{name}=true"]
        words += ["--formatter-property", f"null.literal={NULL}"]
        done = self.run(CONSUMER, *words)
        assert f"Processed a total of {count} messages" in done.err, done.err
        return [_read(line) for line in done.out.splitlines()]

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        place = f"{topic}:{partition}"
        response = self.run(OFFSETS, "--topic-partitions", place, "--time", str(timestamp)).out
        return int(response.rpartition(":")[2]) if response.strip() else None

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        start, end = self.offset_at(topic, partition, -2), self.offset_at(topic, partition, -1)
        assert start is not None
        assert end is not None
        return start, end

    # Topics.

    def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        words = ["--create", "--topic", topic, "--partitions", str(partitions)]
        words += ["--replication-factor", str(replicas)]
        for name, value in configs.items():
            words += ["--config", f"{name}={value}"]
        self.run(TOPICS, *words)

    def delete_topic(self, topic: str) -> None:
        self.run(TOPICS, "--delete", "--topic", topic)

    def create_partitions(self, topic: str, total: int) -> None:
        self.run(TOPICS, "--alter", "--topic", topic, "--partitions", str(total))

    def topics(self) -> dict[str, dict[int, Placed]]:
        topics: dict[str, dict[int, Placed]] = {}
        for topic, partition, leader, replicas, isr in PARTITION.findall(
            self.run(TOPICS, "--describe").out
        ):
            number = int(leader) if leader != "none" else -1
            placed = Placed(number, _numbers(replicas), _numbers(isr))
            topics.setdefault(topic, {})[int(partition)] = placed
        return topics

    def topic_configs(self, topic: str) -> dict[str, str]:
        entity = ("--entity-type", "topics", "--entity-name", topic)
        return dict(ENTRY.findall(self.run(CONFIGS, *entity, "--describe", "--all").out))

    def alter_topic_configs(
        self, topic: str, put: Mapping[str, str], drop: Sequence[str] = ()
    ) -> None:
        words = ["--entity-type", "topics", "--entity-name", topic, "--alter"]
        words += ["--add-config", ",".join(f"{name}={value}" for name, value in put.items())]
        if drop:
            words += ["--delete-config", ",".join(drop)]
        self.run(CONFIGS, *words)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        asked = {"topic": topic, "partition": partition, "offset": before}
        wanted = {"version": 1, "partitions": [asked]}
        done = self.run_with_file(DELETE_RECORDS, "--offset-json-file", wanted)
        assert f"partition: {topic}-{partition}\tlow_watermark: {before}" in done.out

    # The cluster.

    def cluster(self) -> ClusterSeen:
        response = self.run(CLUSTER, "cluster-id").out
        lines = self.run(CLUSTER, "list-endpoints").out.splitlines()[1:]
        brokers = {int(line.split()[0]): int(line.split()[2]) for line in lines}
        return ClusterSeen(response.split()[-1], None, brokers)

    def log_sizes(self, topic: str) -> dict[tuple[int, int], int]:
        response = json.loads(
            self.run(LOG_DIRS, "--describe", "--topic-list", topic).out.splitlines()[-1]
        )
        return {
            (broker["broker"], int(one["partition"].rpartition("-")[2])): one["size"]
            for broker in response["brokers"]
            for folder in broker["logDirs"]
            for one in folder["partitions"]
        }

    def elect(self, topic: str, partition: int) -> None:
        words = ("--election-type", "preferred", "--topic", topic, "--partition", str(partition))
        done = self.run(ELECTION, *words)
        assert "Successfully completed leader election" in done.out

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        done = self.run_with_file(
            REASSIGN, "--reassignment-json-file", moved(topic, partition, replicas), "--execute"
        )
        assert "Successfully started partition reassignment" in done.out

    # Groups.

    def join(self, group: str, topic: str) -> Member:
        self._members += 1
        return _ConsoleMember(self, group, topic, f"member-{self._members}")

    def groups(self) -> set[str]:
        return set(self.run(GROUPS, "--list").out.split())

    def group(self, group: str) -> GroupSeen:
        [row] = self.table(group, "--state")
        return GroupSeen(row[-2].lower(), int(row[-1]))

    def committed(self, group: str, topic: str) -> dict[int, int]:
        rows = self.table(group, "--offsets")
        return {int(row[2]): int(row[3]) for row in sorted(rows) if row[1] == topic}

    def delete_group(self, group: str) -> None:
        self.run(GROUPS, "--delete", "--group", group)

    def table(self, group: str, *words: str) -> list[list[str]]:
        """The rows of a description, without the heading."""
        response = self.run(GROUPS, "--describe", "--group", group, *words).out
        return [line.split() for line in response.splitlines() if line.startswith(f"{group} ")]


class _ConsoleMember(Member):
    """A console consumer that runs until it is interrupted."""

    def __init__(self, tools: JavaTools, group: str, topic: str, name: str) -> None:
        self._tools, self._group, self._topic, self._name = tools, group, topic, name
        words = ["--topic", topic, "--group", group, "--from-beginning"]
        for one in (f"client.id={name}", "heartbeat.interval.ms=200"):
            words += ["--command-property", one]
        words += ["--bootstrap-server", tools.bootstrap]
        self._task = tools.ask(tool=CONSUMER, args=words, background=True)["task"]

    def assignment(self) -> set[int]:
        """From the coordinator, which has no group before its first member."""
        try:
            rows = self._tools.table(self._group, "--members", "--verbose")
        except RefusedError as refused:
            assert refused.error == "GROUP_ID_NOT_FOUND", refused
            return set()
        for row in rows:
            if row[3] == self._name and ":" in row[6]:
                assert row[6].startswith(f"{self._topic}:")
                return set(_numbers(row[6].rpartition(":")[2]))
        return set()

    def values(self) -> list[bytes]:
        out: str = self._tools.ask(look=self._task)["out"]
        return [line.encode() for line in out.splitlines()]

    def close(self) -> None:
        assert self._tools.ask(stop=self._task)["code"] == 0


def moved(topic: str, partition: int, replicas: Sequence[int]) -> Any:
    """The input of the reassignment tool."""
    place = {"topic": topic, "partition": partition, "replicas": list(replicas)}
    return {"version": 1, "partitions": [place]}


def _refusal(said: str) -> str | None:
    for words, error in TOOLS_OWN.items():
        if words in said:
            return error
    found = EXCEPTION.search(said)
    if found is None:
        return None
    return WORDS.get(found[1]) or re.sub(r"(?<!^)(?=[A-Z])", "_", found[1]).upper()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number)


def _line(record: Record) -> str:
    headers = ",".join(f"{name}:{(value or b'').decode()}" for name, value in record.headers)
    parts = (None if part is None else part.decode() for part in (record.key, record.value))
    return "\t".join([headers or NULL, *(NULL if part is None else part for part in parts)]) + "\n"


def _read(line: str) -> Read:
    found = RECORD.fullmatch(line)
    assert found is not None, line
    timestamp, offset, headers, key, value = found.groups()
    named: Headers = ()
    if headers != "NO_HEADERS":
        pairs = (pair.split(":", 1) for pair in headers.split(","))
        named = tuple((name, text.encode()) for name, text in pairs)
    return Read(int(offset), int(timestamp), _part(key), _part(value), named)


def _part(text: str) -> bytes | None:
    return None if text == NULL else text.encode()
