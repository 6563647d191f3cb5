"""The checklist, third part: consumer groups that share, rebalance and commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

from tests.clients.client import Client, GroupSeen, Member
from tests.clients.world import World
from tests.support.waiting import wait_until

Case = Callable[[Client, World], None]
PARTITIONS = 4


def group_resumes(client: Client, world: World) -> None:
    """A member reads all; its successor continues where it stopped."""
    topic, group = world.topic("resumed", PARTITIONS), world.name("group")
    first = _send(world, topic, "first")
    with closing(client.join(group, topic)) as member:
        _wait_values([member], first)
    assert sorted(member.values()) == first
    second = _send(world, topic, "second")
    with closing(client.join(group, topic)) as member:
        _wait_values([member], second)
    assert sorted(member.values()) == second


def group_rebalances(client: Client, world: World) -> None:
    """Two members share, one leaves, the other takes over; nothing is missed."""
    topic, group = world.topic("shared", PARTITIONS), world.name("group")
    everything = set(range(PARTITIONS))
    with ExitStack() as stack:
        one = stack.enter_context(closing(client.join(group, topic)))
        wait_until(lambda: one.assignment() == everything, "one member has all")
        first = _send(world, topic, "first")
        _wait_values([one], first)
        other = client.join(group, topic)
        try:
            wait_until(
                lambda: (
                    len(one.assignment()) == 2
                    and one.assignment() | other.assignment() == everything
                ),
                "two members have two each",
            )
            second = _send(world, topic, "second")
            _wait_values([one, other], first + second)
            assert any(value.startswith(b"second") for value in one.values())
            assert any(value.startswith(b"second") for value in other.values())
        finally:
            other.close()
        wait_until(lambda: one.assignment() == everything, "one member has all again")
        third = _send(world, topic, "third")
        _wait_values([one, other], first + second + third)


def group_admin(client: Client, world: World) -> None:
    """Groups are listed and described, committed offsets read, an empty group deleted."""
    topic, group = world.topic("governed", PARTITIONS), world.name("group")
    sent = _send(world, topic, "x")
    with closing(client.join(group, topic)) as member:
        _wait_values([member], sent)
        assert group in client.groups()
        assert client.group(group) == GroupSeen("stable", 1)
    assert client.group(group) == GroupSeen("empty", 0)
    each = len(sent) // PARTITIONS
    assert client.committed(group, topic) == dict.fromkeys(range(PARTITIONS), each)


def delete_group(client: Client, world: World) -> None:
    """An empty group is deleted; one with members is not."""
    topic, group = world.topic("dissolved", PARTITIONS), world.name("group")
    sent = _send(world, topic, "x")
    with closing(client.join(group, topic)) as member:
        _wait_values([member], sent)
    client.delete_group(group)
    assert group not in client.groups()


def _send(world: World, topic: str, word: str) -> list[bytes]:
    """Five records to each partition; all values, sorted."""
    sent = []
    for partition in range(PARTITIONS):
        values = [f"{word} {partition} {number}".encode() for number in range(5)]
        world.send_values(topic, partition, values)
        sent += values
    return sorted(sent)


def _wait_values(members: Sequence[Member], values: Sequence[bytes]) -> None:
    wanted = set(values)
    wait_until(
        lambda: {value for member in members for value in member.values()} >= wanted,
        "members have got all values",
    )


CASES: dict[str, Case] = {
    "group_resumes": group_resumes,
    "group_rebalances": group_rebalances,
    "group_admin": group_admin,
    "delete_group": delete_group,
}
