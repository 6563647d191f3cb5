"""What counting requests costs, measured where other work on the machine matters least.

    python -m bench.metrics_switched [--pairs 400] [--requests 200] [--json]

Three brokers run in this process. The counting is switched on and off every 200 one-record requests
(acks=all, five in flight), so both halves of a pair see the same state and the same neighbours. The
CPU is that of the whole process, with the client. `against` is what a request costs three broker
processes, as bench.metrics measures it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from holdfast.broker.network.request_counts import RequestCounts
from holdfast.protocol import encode_request
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from holdfast.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
)
from holdfast.protocol.records import NewRecord, build_batch
from tests.support.waiting import eventually
from tests.unit.broker.three import Three

SCHEMA: Final = "holdfast-bench-metrics-switched/1"
TOPIC: Final = "t"
VERSION: Final = 11
IN_FLIGHT: Final = 5
SETTINGS: Final = {"holdfast.metrics.listener": "127.0.0.1:0"}
HEAD: Final = 4


def frame() -> bytes:
    """A Produce request with one record of 100 bytes."""
    batch = build_batch([NewRecord(bytes(100), None, 1)])
    partition = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name=TOPIC, partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    return b"".join(encode_request(request, VERSION, correlation_id=1, client_id="bench"))


class Load:
    """Sends the same request again and again over one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frame = frame()

    async def send(self, requests: int) -> float:
        """CPU of so many requests, in µs for each."""
        began = time.process_time()
        for number in range(requests + IN_FLIGHT):
            if number < requests:
                self._writer.write(self._frame)
            if number >= IN_FLIGHT:
                size = int.from_bytes(await self._reader.readexactly(HEAD), "big")
                await self._reader.readexactly(size)
        return (time.process_time() - began) / requests * 1e6


async def measure(folder: Path, pairs: int, requests: int) -> dict[str, float]:
    """The cost of a request without counting, and what counting adds."""
    three = Three(folder, SETTINGS)
    try:
        await three.start_all()
        made = CreatableTopic(
            name=TOPIC, num_partitions=1, replication_factor=3, assignments=[], configs=[]
        )
        await three.ask(three.controller, CreateTopicsRequest(topics=[made], timeout_ms=30_000))
        leaders = three.brokers.values()

        def leads() -> bool:
            found = [one.replicas.find(TOPIC, 0) for one in leaders]
            return any(one is not None and one.presumes_leadership for one in found)

        await eventually(leads, "there is a leader")
        leader = next(
            one for one in leaders if (it := one.replicas.find(TOPIC, 0)) and it.presumes_leadership
        )
        streams = await asyncio.open_connection("127.0.0.1", leader.endpoint.port)
        return await alternate(three, Load(*streams), pairs, requests)
    finally:
        for broker in three.brokers.values():
            await broker.stop()


async def alternate(three: Three, load: Load, pairs: int, requests: int) -> dict[str, float]:
    counts = {broker.id: RequestCounts() for broker in three.brokers.values()}
    found: dict[bool, list[float]] = {False: [], True: []}
    await load.send(20 * requests)  # warms up
    for number in range(pairs):
        for is_on in (number % 2 == 0, number % 2 == 1):
            for broker in three.brokers.values():
                broker.listener.requests._counts = counts[broker.id] if is_on else None
            found[is_on].append(await load.send(requests))
    added = [on - off for on, off in zip(found[True], found[False], strict=True)]
    low, middle, high = statistics.quantiles(added, n=4)
    error = 1.96 * statistics.stdev(added) / len(added) ** 0.5
    return {
        "off_us": statistics.median(found[False]),
        "added_us": middle,
        "added_low_us": low,
        "added_high_us": high,
        "added_mean_us": statistics.fmean(added),
        "added_mean_error_us": error,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What counting requests costs.")
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--requests", type=int, default=200, help="of one record, half a pair")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        work = measure(Path(folder), options.pairs, options.requests)
        try:
            import uvloop
        except ImportError:
            figures = asyncio.run(work)
        else:
            figures = uvloop.run(work)
    if options.json:
        print(json.dumps({"schema": SCHEMA, "figures": figures}))
    else:
        for name, value in figures.items():
            print(f"{name:20} {value:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
