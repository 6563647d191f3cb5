"""Hand-written traces, so that tests of pictures do not need a simulated world."""

from __future__ import annotations

from typing import Any

from holdfast.model.trace import KINDS, SCHEMA, TraceEvent

PARTITION = "events-0"


class TraceBuilder:
    """Builds a trace event by event; checks that each carries the numbers of its kind."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def add(
        self, kind: str, broker: int | None = None, *, why: int | None = None, **numbers: Any
    ) -> int:
        assert set(numbers) == set(KINDS[kind].numbers), (kind, numbers)
        number = len(self.events)
        self.events.append(TraceEvent(number, 5 * number, kind, broker, 1, PARTITION, numbers, why))
        return number

    def begin(self, names: str = "AB", isr: tuple[int, ...] | None = None, **rules: str) -> None:
        replicas = list(range(1, len(names) + 1))
        self.add(
            "begins",
            schema=SCHEMA,
            names={str(number): name for number, name in enumerate(names, 1)},
            replicas=replicas,
            isr=list(isr or replicas),
            leader=1,
            leader_epoch=1,
            settings={"min.insync.replicas": 1},
            rules=rules,
        )

    def say(self, text: str) -> None:
        self.add("said", text=text)

    def step(self, text: str) -> None:
        self.add("step", text=text)

    def produce(self, leader: int, record: str, offset: int, epoch: int, acks: str = "all") -> int:
        sent = self.add("sent", leader, producer="p1", record=record, acks=acks)
        return self.append(leader, offset, epoch, record, as_leader=True, why=sent)

    def append(
        self,
        broker: int,
        offset: int,
        epoch: int,
        *records: str,
        as_leader: bool = False,
        why: int | None = None,
    ) -> int:
        return self.add(
            "appended",
            broker,
            why=why,
            base_offset=offset,
            end_offset=offset + len(records),
            leader_epoch=epoch,
            records=list(records),
            as_leader=as_leader,
        )

    def ask(self, follower: int, leader: int, offset: int, epoch: int) -> int:
        position = {"fetch_offset": offset, "last_fetched_epoch": epoch, "leader_epoch": epoch}
        sent = self.add("fetch-sent", follower, leader=leader, **position)
        return self.add("fetched", leader, why=sent, follower=follower, noted=True, **position)

    def answer(self, leader: int, follower: int, base: int, end: int, high_watermark: int) -> int:
        return self.add(
            "fetch-answered",
            leader,
            follower=follower,
            base_offset=base,
            end_offset=end,
            high_watermark=high_watermark,
        )

    def commit(self, broker: int, high_watermark: int, was: int, why: int | None = None) -> int:
        return self.add("high-watermark", broker, why=why, high_watermark=high_watermark, was=was)

    def acknowledge(
        self, leader: int, record: str, offset: int, acks: str = "all", why: int | None = None
    ) -> int:
        return self.add(
            "acknowledged", leader, why=why, producer="p1", record=record, offset=offset, acks=acks
        )

    def elect(
        self,
        leader: int,
        epoch: int,
        isr: tuple[int, ...],
        rule: str = "isr",
        why: int | None = None,
    ) -> int:
        return self.add(
            "elected",
            why=why,
            leader=leader,
            leader_epoch=epoch,
            partition_epoch=epoch,
            isr=list(isr),
            eligible=[],
            rule=rule,
        )

    def lead(self, broker: int, epoch: int, end: int, high_watermark: int, *isr: int) -> int:
        return self.add(
            "became-leader",
            broker,
            leader_epoch=epoch,
            start_offset=end,
            log_end_offset=end,
            high_watermark=high_watermark,
            isr=list(isr),
        )

    def restart(self, broker: int, end: int, high_watermark: int) -> int:
        return self.add(
            "restarted", broker, log_end_offset=end, high_watermark=high_watermark, clean=False
        )

    def truncate(
        self, broker: int, end: int, was: int, *records: str, why: int | None = None
    ) -> int:
        return self.add(
            "truncated", broker, why=why, end_offset=end, was=was, records=list(records)
        )

    def verdict(self, verdict: str, outcome: str, lost: tuple[str, ...], reason: str) -> int:
        return self.add(
            "verdict",
            verdict=verdict,
            outcome=outcome,
            lost=list(lost),
            exposed_lost=[],
            refused_kept=[],
            diverged=[],
            reason=reason,
        )


def sync_fetch_after_produce() -> list[TraceEvent]:
    """The table of scenarios.md, section A: two replicas, one record."""
    trace = TraceBuilder()
    trace.begin("AB")
    trace.say("One record travels from A to B, and the new high watermark follows one fetch later.")
    trace.step("produce A m0 acks=all")
    trace.produce(1, "m0", 0, 1)
    trace.step("B fetches from 0; A handles it")
    trace.ask(2, 1, 0, -1)
    trace.answer(1, 2, 0, 1, 0)
    trace.step("B receives m0 with HW 0")
    trace.append(2, 0, 1, "m0")
    trace.step("B fetches from 1; A handles it")
    asked = trace.ask(2, 1, 1, 1)
    trace.commit(1, 1, 0, why=asked)
    trace.acknowledge(1, "m0", 0, why=asked)
    trace.answer(1, 2, 1, 1, 1)
    trace.step("B receives nothing, with HW 1")
    trace.commit(2, 1, 0)
    return trace.events


def loss_restart_truncation() -> list[TraceEvent]:
    """Scenarios.md, section D, old rule: B truncates its log to its own high watermark."""
    trace = TraceBuilder()
    trace.begin("AB", truncation="high-watermark", flush="page-cache")
    trace.say("A leads {A,B}. Three records are on both, but B has not learned yet that the last")
    trace.say("one is committed.")
    trace.step("produce A m0 m1 m2")
    for offset in range(3):
        trace.produce(1, f"m{offset}", offset, 1)
        trace.ask(2, 1, offset, 1)
        trace.answer(1, 2, offset, offset + 1, max(0, offset - 1))
        trace.append(2, offset, 1, f"m{offset}")
        if offset:
            trace.commit(1, offset, offset - 1)
            trace.acknowledge(1, f"m{offset - 1}", offset - 1)
            trace.commit(2, offset, offset - 1)
    trace.say("B's next fetch shows A that B has m2 too, so A acknowledges m2 to the producer.")
    trace.step("B fetches from 3; A handles it")
    asked = trace.ask(2, 1, 3, 1)
    trace.commit(1, 3, 2, why=asked)
    trace.acknowledge(1, "m2", 2, why=asked)
    trace.answer(1, 2, 3, 3, 3)
    trace.say("B dies before the answer arrives. Its high watermark is still 2.")
    trace.step("crash B")
    trace.add("crashed", 2)
    lost = trace.add("message-lost", what="nothing new, HW 3", source=1, target=2)
    trace.step("restart B")
    back = trace.restart(2, 3, 2)
    follows = trace.add("became-follower", 2, why=back, leader=1, leader_epoch=1)
    trace.truncate(2, 2, 3, "m2", why=follows)
    trace.say("Now A dies as well, before B could copy m2 again.")
    trace.step("crash A")
    crashed = trace.add("crashed", 1)
    expired = trace.add("session-expired", 1, why=crashed)
    trace.elect(2, 2, (2,), why=expired)
    trace.lead(2, 2, 2, 2, 2)
    trace.say("A comes home, and follows the rule as well.")
    trace.step("restart A")
    back = trace.restart(1, 3, 2)
    follows = trace.add("became-follower", 1, why=back, leader=2, leader_epoch=2)
    trace.truncate(1, 2, 3, "m2", why=follows)
    trace.ask(1, 2, 2, 1)
    trace.verdict("loses", "acknowledged-and-lost", ("m2",), "m2 was acknowledged and is on no log")
    assert lost
    return trace.events


def divergence_unclean() -> list[TraceEvent]:
    """Two records at one offset: m1 of epoch 1 on A, m2 of epoch 2 on B and C."""
    trace = TraceBuilder()
    trace.begin("ABC", isr=(1,), truncation="leader-epoch")
    trace.step("produce A m0 m1 acks=1")
    for offset in range(2):
        trace.produce(1, f"m{offset}", offset, 1, acks="1")
        trace.acknowledge(1, f"m{offset}", offset, acks="1")
    trace.add("flushed", 1, end_offset=1)
    trace.ask(2, 1, 0, -1)
    trace.append(2, 0, 1, "m0")
    trace.commit(1, 2, 0)
    trace.step("crash A; elect B uncleanly")
    trace.add("crashed", 1)
    trace.elect(2, 2, (2,), rule="unclean")
    trace.lead(2, 2, 1, 0, 2)
    trace.add("became-follower", 3, leader=2, leader_epoch=2)
    trace.step("produce B m2")
    trace.produce(2, "m2", 1, 2)
    trace.ask(3, 2, 0, -1)
    trace.append(3, 0, 1, "m0")
    trace.append(3, 1, 2, "m2")
    trace.commit(2, 2, 0)
    trace.acknowledge(2, "m2", 1)
    trace.add("consumed", 2, consumer="c1", offset=0, record="m0")
    trace.add("committed", None, consumer="c1", offset=1)
    trace.add("cut", None, source=1, targets=[3])
    trace.step("restart A")
    trace.restart(1, 2, 2)
    trace.add("became-follower", 1, leader=2, leader_epoch=2)
    asked = trace.ask(1, 2, 2, 1)
    parted = trace.add("diverged", 2, why=asked, follower=1, epoch=1, end_offset=1)
    trace.truncate(1, 1, 2, "m1", why=parted)
    return trace.events


def one_of_every_kind() -> list[TraceEvent]:
    """An event of every kind, with numbers of the right type, in arbitrary order."""
    values: dict[str, Any] = {
        "names": {"1": "A", "2": "B"}, "replicas": [1, 2], "isr": [1, 2], "eligible": [2],
        "adding": [2], "removing": [], "settings": {"acks": "all"}, "rules": {"flush": "off"},
        "records": ["m1"], "targets": [2], "lost": ["m1"], "exposed_lost": [], "refused_kept": [],
        "diverged": [], "leader": 1, "follower": 2, "source": 1, "target": 2, "rule": "isr",
        "text": "some words", "what": "Fetch", "reason": "it is so", "error": "NOT_ENOUGH_REPLICAS",
        "producer": "p1", "consumer": "c1", "record": "m1", "acks": "all", "offset": 1, "was": 2,
        "as_leader": True, "torn": False, "clean": True, "schema": SCHEMA, "verdict": "loses",
        "outcome": "acknowledged-and-lost", "base_offset": 1, "end_offset": 2, "kept": 1,
    }  # fmt: skip
    return [
        TraceEvent(
            number, number, kind, 1, 3, PARTITION,
            {name: values.get(name, 1) for name in row.numbers}, None,
        )
        for number, (kind, row) in enumerate(KINDS.items())
    ]  # fmt: skip
