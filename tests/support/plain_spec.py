"""The published specification again, slow and simple, to check the fast engine.

One state at a time, as plain Python values; nothing is packed, derived or left out. Shared with the
engine are only the dataclasses that name a state's parts. `successors` lists every way to act, also
those that lead to the same state, because that is what TLC counts as generated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations

from holdfast.search.spec import Bounds, Record, ReplicaState, Request, State

NOBODY = ReplicaState(log=(), high_watermark=0, epoch=None, leader=None, isr=())


def initial(bounds: Bounds) -> State:
    everybody = tuple(range(bounds.replicas))
    return State(tuple(NOBODY for _ in everybody), (), everybody, 0)


def explore(
    variant: str, bounds: Bounds, unfenced: str | None = None
) -> tuple[list[set[State]], int]:
    """All states by their distance from the initial one, and how many were generated."""
    levels, generated = [{initial(bounds)}], 1
    seen = set(levels[0])
    while levels[-1]:
        found: set[State] = set()
        for state in levels[-1]:
            after = list(Plain(variant, bounds, state, unfenced).successors())
            generated += len(after)
            found.update(after)
        levels.append(found - seen)
        seen |= found
    return levels[:-1], generated


def renamed(state: State) -> Iterator[State]:
    """The state under all permutations of the replicas' names."""
    for new in permutations(range(len(state.replicas))):

        def isr(members: tuple[int, ...], new: tuple[int, ...] = new) -> tuple[int, ...]:
            return tuple(sorted(new[one] for one in members))

        def name(one: int | None, new: tuple[int, ...] = new) -> int | None:
            return None if one is None else new[one]

        replicas = list(state.replicas)
        for old, replica in enumerate(state.replicas):
            replicas[new[old]] = replace(replica, leader=name(replica.leader), isr=isr(replica.isr))
        requests = tuple(Request(name(one.leader), isr(one.isr)) for one in state.requests)
        yield State(tuple(replicas), requests, isr(state.agreed_isr), state.next_record)


def weak_isr(state: State) -> bool:
    return all(
        _same_below(leader, state.replicas[member], leader.high_watermark)
        for number, leader in enumerate(state.replicas)
        if leader.leader == number
        for member in leader.isr
    )


def strong_isr(state: State) -> bool:
    return all(
        _same_below(leader, state.replicas[member], leader.high_watermark)
        for number, leader in enumerate(state.replicas)
        if leader.leader == number
        for member in state.agreed_isr
    )


def _same_below(one: ReplicaState, other: ReplicaState, offset: int) -> bool:
    return len(one.log) >= offset and one.log[:offset] == other.log[:offset]


class Plain:
    """One state under one variant's rules."""

    def __init__(
        self, variant: str, bounds: Bounds, state: State, unfenced: str | None = None
    ) -> None:
        self.variant = variant
        self.bounds = bounds
        self.state = state
        self.replicas = state.replicas
        self.agreed_leader = state.requests[-1].leader if state.requests else None
        if unfenced is not None:
            # This one action is that of the specification before.
            setattr(self, unfenced, getattr(Plain("kip279", bounds, state), unfenced))

    def successors(self) -> Iterator[State]:
        yield from self.controller()
        for one in range(len(self.replicas)):
            yield from self.become_leader(one)
            yield from self.write(one)
            yield from self.raise_high_watermark(one)
            for other in range(len(self.replicas)):
                if one != other:
                    yield from self.shrink(one, other)
                    yield from self.expand(one, other)
                    yield from self.become_follower(one, other)
                    yield from self.fetch(one, other)
                    yield from self.truncate(one, other)

    # The controller.

    def controller(self) -> Iterator[State]:
        isr = self.state.agreed_isr
        for one in isr:
            if one != self.agreed_leader:
                yield from self.request(one, isr)
                yield from self.request(self.agreed_leader, _minus(isr, one))
        if self.agreed_leader is not None:
            rest = _minus(isr, self.agreed_leader)
            yield from self.request(None, rest or isr)

    def request(self, leader: int | None, isr: tuple[int, ...]) -> Iterator[State]:
        if len(self.state.requests) <= self.bounds.max_epoch:
            requests = (*self.state.requests, Request(leader, isr))
            yield replace(self.state, requests=requests, agreed_isr=isr)

    # What a replica does alone.

    def become_leader(self, me: int) -> Iterator[State]:
        for epoch, request in self.newer_requests(me):
            if request.leader == me:
                yield self.with_replica(me, epoch=epoch, leader=me, isr=request.isr)

    def newer_requests(self, me: int) -> Iterator[tuple[int, Request]]:
        mine = self.replicas[me].epoch
        for epoch, request in enumerate(self.state.requests):
            if mine is None or epoch > mine:
                yield epoch, request

    def write(self, me: int) -> Iterator[State]:
        replica, record = self.replicas[me], self.state.next_record
        full = len(replica.log) == self.bounds.log_size
        if replica.leader == me and record < self.bounds.records and not full:
            assert replica.epoch is not None
            log = (*replica.log, Record(record, replica.epoch))
            yield replace(self.with_replica(me, log=log), next_record=record + 1)

    def raise_high_watermark(self, me: int) -> Iterator[State]:
        leader = self.replicas[me]
        offset = leader.high_watermark
        all_have_it = all(self.counts(me, member, offset + 1) for member in leader.isr)
        if leader.leader == me and len(leader.log) > offset and all_have_it:
            yield self.with_replica(me, high_watermark=offset + 1)

    # A leader's view of a follower.

    def counts(self, leader: int, follower: int, end: int) -> bool:
        """Whether the leader counts the follower as having all before `end`."""
        ours, theirs = self.replicas[leader], self.replicas[follower]
        if theirs.leader != leader or len(theirs.log) < end:
            return False
        match self.variant:
            case "kip320":
                return ours.leader == leader and ours.epoch == theirs.epoch
            case "kip320-first":
                if ours.leader != leader or len(ours.log) < end:
                    return False
                return end == 0 or ours.log[end - 1].epoch == theirs.log[end - 1].epoch
            case _:
                return True

    def is_true_leader(self, me: int) -> bool:
        replica = self.replicas[me]
        in_epoch = replica.epoch == len(self.state.requests) - 1
        return self.agreed_leader == me and replica.leader == me and in_epoch

    def shrink(self, me: int, other: int) -> Iterator[State]:
        leader, follower = self.replicas[me], self.replicas[other]
        if not self.is_true_leader(me) or other not in leader.isr:
            return
        after = self.with_isr(me, _minus(leader.isr, other))
        if self.variant == "kip320":
            if not self.counts(me, other, 0):
                yield after
            if len(follower.log) < len(leader.log):
                yield after
        elif not self.counts(me, other, len(leader.log)):
            yield after

    def expand(self, me: int, other: int) -> Iterator[State]:
        leader = self.replicas[me]
        if not self.is_true_leader(me) or other in leader.isr:
            return
        offset = leader.high_watermark
        careful = self.variant.startswith("kip320")
        older = any(record.epoch != leader.epoch for record in leader.log[offset : offset + 1])
        if self.counts(me, other, offset) and not (careful and older):
            yield self.with_isr(me, tuple(sorted((*leader.isr, other))))

    # What a follower does.

    def become_follower(self, me: int, leader: int) -> Iterator[State]:
        log = self.replicas[me].log
        for epoch, request in self.newer_requests(me):
            if request.leader != leader:
                continue
            received = {"epoch": epoch, "leader": leader, "isr": request.isr}
            match self.variant:
                case "kip320-first":
                    yield self.with_replica(me, **received)
                case "kip320":
                    theirs = self.replicas[leader]
                    if theirs.leader == leader and theirs.epoch == epoch:
                        yield self.truncated(me, self.last_match(me, leader), **received)
                case "kip279":
                    if not log:
                        yield self.truncated(me, 0, **received)
                    yield self.truncated(me, self.last_match(me, leader), **received)
                case _:
                    points = {"hw": self.at_high_watermark, "kip101": self.where_epoch_ends}
                    offset = points[self.variant](me, leader)
                    if offset <= len(log):
                        yield self.truncated(me, offset, **received)

    def at_high_watermark(self, me: int, leader: int) -> int:
        del leader
        return self.replicas[me].high_watermark

    def where_epoch_ends(self, me: int, leader: int) -> int:
        mine, theirs = self.replicas[me], self.replicas[leader].log
        if not mine.log:
            return 0
        last = mine.log[-1].epoch
        if theirs and theirs[-1].epoch == last:
            return len(theirs)
        later = [offset for offset, record in enumerate(theirs) if record.epoch > last]
        return min(later, default=mine.high_watermark)

    def last_match(self, me: int, leader: int) -> int:
        both = zip(self.replicas[me].log, self.replicas[leader].log, strict=False)
        same = [offset for offset, (mine, theirs) in enumerate(both) if mine == theirs]
        return max(same, default=-1) + 1

    def truncate(self, me: int, leader: int) -> Iterator[State]:
        mine, theirs = self.replicas[me], self.replicas[leader]
        if self.variant != "kip320-first" or not mine.leader == leader == theirs.leader:
            return
        end = len(mine.log)
        too_long = end > len(theirs.log)
        if too_long or (end and theirs.log[end - 1].epoch != mine.log[-1].epoch):
            yield self.truncated(me, self.last_match(me, leader))

    def fetch(self, me: int, leader: int) -> Iterator[State]:
        mine, theirs = self.replicas[me], self.replicas[leader]
        end = len(mine.log)
        if theirs.leader == leader and len(theirs.log) > end and self.counts(leader, me, end):
            high_watermark = min(theirs.high_watermark, end + 1)
            log = (*mine.log, theirs.log[end])
            yield self.with_replica(me, log=log, high_watermark=high_watermark)

    # The state with a change.

    def with_replica(self, me: int, **changes: object) -> State:
        changed: Callable[..., ReplicaState] = replace
        replicas = list(self.replicas)
        replicas[me] = changed(replicas[me], **changes)
        return replace(self.state, replicas=tuple(replicas))

    def with_isr(self, me: int, isr: tuple[int, ...]) -> State:
        return replace(self.with_replica(me, isr=isr), agreed_isr=isr)

    def truncated(self, me: int, offset: int, **changes: object) -> State:
        replica = self.replicas[me]
        high_watermark = min(offset, replica.high_watermark)
        log = replica.log[:offset]
        return self.with_replica(me, log=log, high_watermark=high_watermark, **changes)


def _minus(isr: tuple[int, ...], one: int) -> tuple[int, ...]:
    return tuple(member for member in isr if member != one)
