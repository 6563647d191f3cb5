"""How fast messages are encoded and decoded, as ratios to kafka-python and kio in one run.

The six messages are those a broker meets all day, seen from the broker: it decodes requests and
encodes responses, so those are the figures that count; the other direction is shown as well.
Short rounds of the codecs alternate, only the time of this thread counts, and a ratio is the median
of the ratios of neighbouring rounds: on a busy machine times double and ratios stay.

    python bench/protocol_codec.py [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import kio.index
import kio.serial

from holdfast.protocol import Message, Request
from holdfast.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
)
from holdfast.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from holdfast.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.consumer import fetch as kafka_fetch
    from kafka.protocol.metadata import api_versions as kafka_api_versions
    from kafka.protocol.metadata import metadata as kafka_metadata
    from kafka.protocol.producer import produce as kafka_produce

KAFKA_PYTHON: dict[str, Any] = {
    name: getattr(module, name)
    for module in (kafka_api_versions, kafka_fetch, kafka_metadata, kafka_produce)
    for name in module.__all__
}

ROUND_SECONDS = 0.005
CODECS = ("holdfast", "kafka-python", "kio")
"""Encoding twice as fast as kafka-python, and decoding as fast, is the target."""
ENCODE_TARGET = 2.0
DECODE_TARGET = 1.0


def api_versions() -> Message:
    keys = [ApiVersion(api_key=key, min_version=0, max_version=9) for key in range(60)]
    return ApiVersionsResponse(error_code=0, api_keys=keys)


def metadata() -> Message:
    brokers = [
        MetadataResponseBroker(node_id=node, host=f"broker-{node}.example", port=9092, rack=None)
        for node in range(3)
    ]
    topics = [
        MetadataResponseTopic(
            error_code=0,
            name=f"topic-{topic}",
            topic_id=bytes([topic + 1]) * 16,
            partitions=[metadata_partition(index) for index in range(6)],
        )
        for topic in range(10)
    ]
    return MetadataResponse(
        brokers=brokers, cluster_id="a-cluster-of-three-nodes", controller_id=1, topics=topics
    )


def metadata_partition(index: int) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=0,
        partition_index=index,
        leader_id=index % 3,
        leader_epoch=4,
        replica_nodes=[0, 1, 2],
        isr_nodes=[0, 1, 2],
        offline_replicas=[],
    )


def produce_request() -> Message:
    partition = PartitionProduceData(index=0, records=bytes(16 * 1024))
    topic = TopicProduceData(name="topic-0", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[topic])


def produce_response() -> Message:
    partition = PartitionProduceResponse(
        index=0, error_code=0, base_offset=1234567, log_append_time_ms=-1, log_start_offset=0
    )
    topic = TopicProduceResponse(name="topic-0", partition_responses=[partition])
    return ProduceResponse(responses=[topic])


def fetch_request() -> Message:
    partitions = [
        FetchPartition(partition=index, fetch_offset=1000, partition_max_bytes=1 << 20)
        for index in range(10)
    ]
    topics = [FetchTopic(topic="topic-0", partitions=partitions)]
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics)


def fetch_response() -> Message:
    partitions = [
        FetchPartitionData(
            partition_index=index,
            error_code=0,
            high_watermark=1000,
            last_stable_offset=1000,
            log_start_offset=0,
            aborted_transactions=None,
            records=bytes(1024),
        )
        for index in range(10)
    ]
    topic = FetchableTopicResponse(topic="topic-0", partitions=partitions)
    return FetchResponse(responses=[topic])


MESSAGES: tuple[tuple[str, Message, int], ...] = (
    ("ApiVersions response, 60 APIs", api_versions(), 4),
    ("Metadata response, 10 topics x 6 x 3", metadata(), 12),
    ("Produce request, 16 KiB", produce_request(), 9),
    ("Produce response", produce_response(), 9),
    ("Fetch request, 10 partitions", fetch_request(), 12),
    ("Fetch response, 10 x 1 KiB", fetch_response(), 12),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What one message took in one direction."""

    message: str
    version: int
    direction: str
    rounds: dict[str, list[float]]
    """Microseconds a message in each round, by codec."""

    @property
    def times(self) -> dict[str, float]:
        """Microseconds a message, by codec."""
        return {codec: median(rounds) for codec, rounds in self.rounds.items()}

    def ratio(self, codec: str) -> float:
        """How many times as fast as that codec we are."""
        pairs = zip(self.rounds[codec], self.rounds["holdfast"], strict=True)
        return median(theirs / ours for theirs, ours in pairs)

    @property
    def reached(self) -> bool:
        target = ENCODE_TARGET if self.direction == "encode" else DECODE_TARGET
        return self.ratio("kafka-python") >= target


def actions(message: Message, version: int) -> dict[str, dict[str, Callable[[], object]]]:
    """What to time, by direction and codec. All codecs start from the same bytes."""
    wire = message.encode(version)
    view = memoryview(wire)
    cls = type(message)
    kafka_class = KAFKA_PYTHON[cls.__name__]
    kafka_message = kafka_class.decode(wire, version=version)
    kafka_message._header = None
    assert kafka_message.encode(version=version) == wire
    kio_class = kio_schema(message, version)
    kio_read, kio_write = kio.serial.entity_reader(kio_class), kio.serial.entity_writer(kio_class)
    kio_message = kio_read(wire, 0)[0]
    return {
        "encode": {
            "holdfast": lambda: message.encode(version),
            "kafka-python": lambda: kafka_message.encode(version=version),
            "kio": lambda: kio_write(io.BytesIO(), kio_message),
        },
        "decode": {
            "holdfast": lambda: cls.decode(view, version),
            "kafka-python": lambda: kafka_class.decode(view, version=version),
            "kio": lambda: kio_read(wire, 0),
        },
    }


def kio_schema(message: Message, version: int) -> Any:
    is_request = isinstance(message, Request)
    load: Any = kio.index.load_request_schema if is_request else kio.index.load_response_schema
    return load(type(message).API_KEY, version)  # type: ignore[attr-defined]


def alternate(codecs: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Microseconds a call, in each of so many alternating rounds of about equal length."""
    counts = {name: calls_per_round(action) for name, action in codecs.items()}
    times: dict[str, list[float]] = {name: [] for name in codecs}
    for _ in range(rounds):
        for name, action in codecs.items():
            times[name].append(seconds(action, counts[name]) / counts[name] * 1e6)
    return times


def calls_per_round(action: Callable[[], object]) -> int:
    action()
    return max(1, int(ROUND_SECONDS / (seconds(action, 20) / 20)))


def seconds(action: Callable[[], object], count: int) -> float:
    start = time.thread_time()
    for _ in range(count):
        action()
    return time.thread_time() - start


def measure(rounds: int) -> list[Row]:
    rows = []
    for title, message, version in MESSAGES:
        for direction, codecs in actions(message, version).items():
            rows.append(Row(title, version, direction, alternate(codecs, rounds)))
    return rows


def table(rows: list[Row]) -> str:
    head = f"{'message':38} {'':>6}  " + "  ".join(f"{codec + ' µs':>15}" for codec in CODECS)
    lines = [head + "  to kafka-python  to kio"]
    for row in rows:
        times = "  ".join(f"{row.times[codec]:15.2f}" for codec in CODECS)
        mark = "" if row.reached else "  below target"
        lines.append(
            f"{row.message:38} {row.direction:>6}  {times}  {row.ratio('kafka-python'):14.2f}x"
            f"  {row.ratio('kio'):5.2f}x{mark}"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    rows = measure(arguments.rounds)
    if arguments.json:
        found = [
            {
                "message": row.message,
                "version": row.version,
                "direction": row.direction,
                "microseconds": row.times,
                "ratio_to_kafka_python": row.ratio("kafka-python"),
                "ratio_to_kio": row.ratio("kio"),
                "target_reached": row.reached,
            }
            for row in rows
        ]
        print(json.dumps(found, indent=2))
    else:
        print(table(rows))
    return 0 if all(row.reached for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
