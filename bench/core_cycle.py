"""The cost of one acks=all batch in the core, in microseconds of CPU.

One leader, two followers that wait at its end, min.insync.replicas 2. The cycle of one batch:
append, written (wakes both parked fetches), both followers copy it and ask for more, the second
of these fetches raises the high watermark, the producer is answered, both fetches are parked.

    leader               the leader's calls alone; the target is about 25 µs
    leader, idempotent   the same for a producer with sequence numbers
    cycle                the leader's and both followers' calls

No bytes, sockets or disks: this is the cost of the replication rules alone. Exit code 0 always: a
shared machine is no place for a verdict.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.core import (
    ACKS_ALL,
    Acknowledge,
    Fetch,
    FetchAnswer,
    LogState,
    Replica,
    Settings,
    WakeFetch,
)
from holdfast.model import (
    BatchHeader,
    BrokerEpoch,
    BrokerId,
    ErrorCode,
    LeaderEpoch,
    Offset,
    PartitionEpoch,
    PartitionState,
    ProducerId,
)

SCHEMA = "holdfast-bench-core/1"
LEADER, *FOLLOWERS = BROKERS = (BrokerId(1), BrokerId(2), BrokerId(3))
EPOCH = LeaderEpoch(1)
BROKER_EPOCH = BrokerEpoch(1)
STATE = PartitionState(BROKERS, BROKERS, LEADER, EPOCH, PartitionEpoch(1))
SETTINGS = Settings(min_insync_replicas=2)
RECORDS = 16
WAIT_MS = 500


class Cost(NamedTuple):
    """Microseconds of CPU per batch: the median round, the best and the worst."""

    median: float
    best: float
    worst: float


def new_leader() -> Replica:
    """A leader whose followers have fetched up to its end and wait there."""
    leader = Replica(LEADER, LogState(SETTINGS))
    leader.become_leader(STATE, 0)
    for follower in FOLLOWERS:
        leader.fetched(fetch_from(follower, Offset(0)), 0)
        leader.park_fetch(follower, WAIT_MS, at_end=True)
    return leader


def new_follower(broker: BrokerId) -> Replica:
    follower = Replica(broker, LogState(SETTINGS))
    follower.become_follower(STATE)
    return follower


def fetch_from(follower: BrokerId, offset: Offset) -> Fetch:
    return Fetch(follower, offset, EPOCH, EPOCH, BROKER_EPOCH)


def plain_batch(_: int) -> BatchHeader:
    return BatchHeader(RECORDS)


def idempotent_batch(number: int) -> BatchHeader:
    return BatchHeader(RECORDS, producer_id=ProducerId(7), producer_epoch=0, base_sequence=number)


def leader_alone(cycles: int, make_batch: Callable[[int], BatchHeader]) -> float:
    """Seconds of CPU for the leader's calls; the requests are ready before the clock starts."""
    leader = new_leader()
    batches = [make_batch(number * RECORDS) for number in range(cycles)]
    fetches = [
        [fetch_from(follower, Offset(number * RECORDS)) for follower in FOLLOWERS]
        for number in range(1, cycles + 1)
    ]
    answered = 0
    started = time.process_time()
    for now_ms, (batch, asked) in enumerate(zip(batches, fetches, strict=True)):
        leader.append_as_leader(batch, ACKS_ALL, batch, now_ms + 30_000)
        leader.appended(now_ms)
        for fetch in asked:
            answer = leader.fetched(fetch, now_ms)
            leader.park_fetch(fetch.follower, now_ms + WAIT_MS, at_end=True)
            for effect in answer.effects:
                answered += type(effect) is Acknowledge
    spent = time.process_time() - started
    assert answered == cycles, f"{answered} of {cycles} producers were answered"
    return spent


def whole_cycle(cycles: int) -> float:
    """Seconds of CPU for the leader's and both followers' calls."""
    leader = new_leader()
    followers = {broker: new_follower(broker) for broker in FOLLOWERS}
    batch = plain_batch(0)
    answered = 0
    started = time.process_time()
    for now_ms in range(cycles):
        taken = leader.append_as_leader(batch, ACKS_ALL, batch, now_ms + 30_000)
        written = batch._replace(base_offset=taken.base_offset, leader_epoch=taken.leader_epoch)
        for effect in leader.appended(now_ms):
            if type(effect) is WakeFetch:
                copier = followers[effect.waiter]  # type: ignore[index]  # we parked broker ids
                fetch = copy(copier, answer_of(leader, written.base_offset), written, now_ms)
                answer = leader.fetched(fetch, now_ms)
                leader.park_fetch(fetch.follower, now_ms + WAIT_MS, at_end=True)
                for caused in answer.effects:
                    answered += type(caused) is Acknowledge
    spent = time.process_time() - started
    assert answered == cycles, f"{answered} of {cycles} producers were answered"
    return spent


def answer_of(leader: Replica, fetch_offset: Offset) -> FetchAnswer:
    """The answer of a driver to a woken fetch."""
    log = leader.log
    return FetchAnswer(
        ErrorCode.NONE,
        fetch_offset,
        log.log_end_offset,
        log.high_watermark,
        log.log_start_offset,
        None,
        (),
    )


def copy(follower: Replica, answer: FetchAnswer, batch: BatchHeader, now_ms: int) -> Fetch:
    """A follower's part: apply the answer, and fetch again."""
    follower.append_as_follower((batch,), answer.high_watermark, now_ms)
    asked = follower.next_fetch()
    assert asked
    return Fetch(
        follower.broker,
        asked.fetch_offset,
        asked.last_fetched_epoch,
        asked.current_leader_epoch,
        BROKER_EPOCH,
    )


def measure(run: Callable[[int], float], cycles: int, rounds: int) -> Cost:
    """One round to warm up, then the median of the others."""
    run(max(1, cycles // 4))
    gc.collect()
    costs = [run(cycles) * 1e6 / cycles for _ in range(rounds)]
    return Cost(statistics.median(costs), min(costs), max(costs))


def measure_all(cycles: int, rounds: int) -> dict[str, Cost]:
    """Every figure by its name."""
    return {
        "leader": measure(lambda n: leader_alone(n, plain_batch), cycles, rounds),
        "leader_idempotent": measure(lambda n: leader_alone(n, idempotent_batch), cycles, rounds),
        "cycle": measure(whole_cycle, cycles, rounds),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The core's CPU time for one acks=all batch.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--cycles", type=int, default=10_000, help="batches a round")
    parser.add_argument("--rounds", type=int, default=7, help="rounds a figure")
    options = parser.parse_args(arguments)
    costs = measure_all(options.cycles, options.rounds)
    if options.json:
        figures = {f"{name}_us": cost._asdict() for name, cost in costs.items()}
        print(json.dumps({"schema": SCHEMA, "cycles": options.cycles, **figures}))
        return 0
    print(f"µs of CPU per acks=all batch, RF 3, min ISR 2, {options.rounds} x {options.cycles}")
    for name, cost in costs.items():
        spread = f"{cost.best:.1f} to {cost.worst:.1f}"
        print(f"{name.replace('_', ', '):20} {cost.median:6.1f}   ({spread})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
