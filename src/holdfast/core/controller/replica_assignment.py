"""Replica assignment of new partitions: spread evenly over brokers, and over racks if known.

The algorithm is Kafka's (KIP-36). Leaders go round the brokers from `start`. A partition's other
replicas follow its leader at a distance that grows by one each time all brokers have had a turn, so
that the followers of one broker's partitions are on all other brokers. With racks, the brokers are
ordered to alternate between them, and a rack or broker is used twice only if there is no other.

The caller draws the start and the distance at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.model import BrokerId

Racks = Mapping[BrokerId, str | None]
"""The live brokers and their racks."""


def assign(
    brokers: Racks, partitions: Sequence[int], replicas: int, start: int, shift: int
) -> dict[int, tuple[BrokerId, ...]]:
    """Replicas for partitions with these numbers; the first of each is the preferred leader.

    Needs at least one broker per replica. If any broker has no rack, racks are ignored.
    """
    assert 0 < replicas <= len(brokers), (replicas, len(brokers))
    order = _alternating(brokers)
    racks = {broker: rack for broker, rack in brokers.items() if rack is not None}
    if len(racks) < len(brokers):
        order, racks = sorted(brokers), {}
    count = len(order)
    assigned: dict[int, tuple[BrokerId, ...]] = {}
    for place, partition in enumerate(partitions):
        number = partitions[0] + place
        if number and number % count == 0:
            shift += 1
        leader = (number + start) % count
        chosen = [order[leader]]
        distance = 0
        # At most count rounds for each replica: every broker comes by once.
        while len(chosen) < replicas:
            broker = order[(leader + 1 + (shift + distance) % max(count - 1, 1)) % count]
            distance += 1
            if _may_follow(broker, chosen, racks):
                chosen.append(broker)
        assigned[partition] = tuple(chosen)
    return assigned


def _may_follow(
    broker: BrokerId,
    chosen: list[BrokerId],
    racks: Mapping[BrokerId, str],
) -> bool:
    if broker in chosen:
        return False
    if not racks:
        return True
    used = dict.fromkeys(racks[one] for one in chosen)
    every_rack_used = len(used) == len(dict.fromkeys(racks.values()))
    return racks[broker] not in used or every_rack_used


def _alternating(brokers: Racks) -> list[BrokerId]:
    """The brokers in an order in which neighbours are in different racks where possible."""
    by_rack: dict[str, list[BrokerId]] = {}
    for broker in sorted(brokers):
        by_rack.setdefault(brokers[broker] or "", []).append(broker)
    longest = max(map(len, by_rack.values()))
    columns = [by_rack[rack] for rack in sorted(by_rack)]
    return [column[row] for row in range(longest) for column in columns if row < len(column)]
