"""A slow, obvious audit of one partition in plain Python, to compare the real one with.

Written from docs/audit.md, not from the code. Findings are (kind, place, offset), counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

Content = tuple[bytes | None, bytes | None]
Line = dict[int, tuple[int, Content]]
"""Offset -> (leader epoch, content)."""


@dataclass
class Copy:
    name: str
    line: Line
    high_watermark: int = 0
    start: int = 0

    @property
    def end(self) -> int:
        return max(self.line, default=self.start - 1) + 1

    @property
    def solid_end(self) -> int:
        """A last batch after a gap does not make a log longer. Batches hold one record or two."""
        if not self.line:
            return self.start
        last = max(self.line)
        pair = self.line.get(last - 1)
        is_pair = last % 2 == 1 and pair is not None and pair[0] == self.line[last][0]
        first = last - 1 if is_pair else last
        before = max((offset for offset in self.line if offset < first), default=-1) + 1
        return max(self.end if before == first else before, self.start)

    @property
    def epoch(self) -> int:
        return self.line[max(self.line)][0] if self.line else -1


@dataclass
class Send:
    who: int
    sequence: int
    content: Content
    result: str
    offset: int = -1
    partition: int = 0
    """-1: the producer left it to the partitioner, and no answer came."""


@dataclass
class World:
    copies: list[Copy]
    sends: list[Send]
    table: list[tuple[int, Content]] | None = None
    polls: list[tuple[int, int, Content]] | None = None
    """(consumer, offset, content), in the order of delivery."""
    min_insync: int = 1


Findings = Counter[tuple[str, str, int]]


def audit(world: World) -> Findings:
    return _Audit(world).run()


class _Audit:
    def __init__(self, world: World) -> None:
        self.world = world
        self.truth, *self.others = sorted(
            world.copies, key=lambda copy: (-copy.epoch, -copy.solid_end, copy.name)
        )
        self.longest = max(copy.end for copy in world.copies)
        self.found: Findings = Counter()
        self.claimed: dict[int, Send] = {}
        self.missing: list[Send] = []
        self.expired: list[Send] = []
        self.known = {send.content for send in world.sends}

    def run(self) -> Findings:
        self.claim()
        line = self.truth.line
        self.left = {at: what for at, (_, what) in line.items() if at not in self.claimed}
        self.settle(dict(self.left))
        self.order()
        reported = {send.offset for send in self.missing + self.expired}
        for copy in self.others:
            reported |= self.compare(copy, reported)
        self.gaps(reported)
        self.copies()
        table, polls = self.world.table, self.world.polls
        if table is not None:
            self.read("table", table, 0)
        if polls is not None:
            rows = [(offset, what) for _, offset, what in polls]
            self.read("consumed", rows, min((offset for offset, _ in rows), default=0))
            self.polls(polls)
        return +self.found

    def claim(self) -> None:
        acked = [one for one in self.world.sends if one.result == "acked" and one.offset >= 0]
        for send in sorted(acked, key=lambda one: (one.offset, one.who, one.sequence)):
            if holds(self.truth, send.offset, send.content) and send.offset not in self.claimed:
                self.claimed[send.offset] = send
            elif self.is_expired(send):
                self.expired.append(send)
                self.found["expired", "log", send.offset] += 1
            else:
                self.missing.append(send)

    def is_expired(self, send: Send) -> bool:
        is_below_all = all(send.offset < copy.start for copy in self.world.copies)
        is_kept = any(holds(copy, send.offset, send.content) for copy in self.others)
        return send.offset < self.truth.start and (is_below_all or is_kept)

    def settle(self, left: dict[int, Content]) -> None:
        def take(content: Content) -> int | None:
            for offset in sorted(left):
                if left[offset] == content:
                    del left[offset]
                    return offset
            return None

        rank = {"acked": 0, "unknown": 1, "refused": 2}
        opened = [send for send in self.world.sends if send.offset < 0]
        opened.sort(key=lambda one: (one.partition < 0, rank[one.result], one.sequence))
        for send in opened:
            offset = take(send.content)
            if send.result == "refused" and offset is not None:
                self.found["refused but read", "log", offset] += 1
            if send.result == "acked" and offset is None:
                self.found["lost", "log", -1] += 1
        for send in self.missing:
            kind = "lost" if take(send.content) is None else "reordered send"
            self.found[kind, "log", send.offset] += 1
        for offset, content in left.items():
            if content in self.known:
                self.found["duplicate", "log", offset] += 1

    def order(self) -> None:
        for offset, send in self.claimed.items():
            if any(
                at < offset and other.who == send.who and other.sequence > send.sequence
                for at, other in self.claimed.items()
            ):
                self.found["reordered send", "log", offset] += 1

    def compare(self, copy: Copy, reported: set[int]) -> set[int]:
        extra = set()
        truth = self.truth
        for offset in set(range(max(truth.end, copy.end))) - reported:
            ours, theirs = copy.line.get(offset), truth.line.get(offset)
            is_committed = offset < copy.high_watermark
            due = max(copy.end, min(copy.high_watermark, self.longest))
            if ours and theirs:
                is_wrong = ours[1] != theirs[1] and (is_committed or ours[0] == theirs[0])
                is_wrong = is_wrong or (ours[0] != theirs[0] and is_committed)
                self.found["inconsistent offset", "log", offset] += is_wrong
            elif theirs:
                self.found["replicas differ", "log", offset] += copy.start <= offset < due
            elif ours and offset >= truth.start and (is_committed or offset < truth.end):
                self.found["replicas differ", "log", offset] += 1
                extra.add(offset)
        return extra

    def gaps(self, reported: set[int]) -> None:
        for offset in range(self.truth.start, self.truth.end):
            if offset not in self.truth.line and offset not in reported:
                self.found["gap", "log", offset] += 1

    def copies(self) -> None:
        for offset, send in self.claimed.items():
            count = sum(holds(copy, offset, send.content) for copy in self.world.copies)
            self.found["too few copies", "log", offset] += count < self.world.min_insync

    def read(self, place: str, rows: list[tuple[int, Content]], start: int) -> None:
        offsets = Counter(offset for offset, _ in rows)
        end = max(offsets, default=-1) + 1
        for send in [*self.claimed.values(), *self.expired]:
            if send.offset in offsets or send.offset < start:
                continue
            is_tail = send.offset >= end and send.offset >= self.truth.start
            kind = "unseen tail" if is_tail else "lost"
            self.found[kind, place, send.offset] += 1
        for offset in self.left:
            if start <= offset < end and offset not in offsets:
                self.found["skipped", place, offset] += 1
        if place == "table":
            for offset, count in offsets.items():
                self.found["duplicate", place, offset] += count - 1
        for send in self.expired:
            first = next((what for at, what in rows if at == send.offset), send.content)
            self.found["inconsistent offset", place, send.offset] += first != send.content
        for offset, content in rows:
            self.read_one(place, offset, content)

    def read_one(self, place: str, offset: int, content: Content) -> None:
        truth = self.truth
        if offset in truth.line:
            is_other = truth.line[offset][1] != content
            self.found["inconsistent offset", place, offset] += is_other
            return
        acknowledged = {(send.offset, send.content) for send in self.missing}
        if offset < truth.start or (offset, content) in acknowledged:
            return
        is_kept = any(holds(copy, offset, content) for copy in self.others)
        kind = "inconsistent offset" if is_kept or content in self.known else "phantom"
        self.found[kind, place, offset] += 1

    def polls(self, polls: list[tuple[int, int, Content]]) -> None:
        highest: dict[int, int] = {}
        for consumer, offset, _ in polls:
            if offset <= highest.get(consumer, -1):
                self.found["non-monotonic poll", "consumed", offset] += 1
            highest[consumer] = max(offset, highest.get(consumer, -1))


def holds(copy: Copy, offset: int, content: Content) -> bool:
    return offset in copy.line and copy.line[offset][1] == content
