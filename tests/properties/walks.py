"""Seeded walks through the small cluster: one integer gives one schedule.

Hypothesis is good at short failing schedules, a weighted walk at long ones: it prefers progress to
faults, and each seed omits some kinds of steps, so that the others meet more often.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from holdfast.core import Leader, Rules
from holdfast.model import BrokerId, Offset
from tests.properties.cluster import Cluster, true_leader
from tests.properties.cluster_checks import check, end_faults
from tests.properties.node import Node
from tests.properties.wire import BROKERS, PARTITION, REPEATABLE

STEPS_A_WALK = 150
WIRE_LIMIT = 60


class Walk:
    """One seed's schedule."""

    def __init__(self, seed: int, rules: Rules, minimum: int = 2) -> None:
        self.rng = Random(seed)
        self.cluster = Cluster(rules, minimum)
        self.cluster.records_a_fetch = self.rng.choice((1, 2, 99))
        self.losses_left = minimum - 1
        """Fewer lossy ends than min.insync.replicas: no acknowledged record may be lost."""

    def run(self) -> None:
        """Take every step, with checks after each; then end all faults and check the recovery."""
        names = [
            name
            for name in WEIGHTS
            if name in ESSENTIAL or self.rng.random() < 0.75  # Swarm: leave some out.
        ]
        weights = [WEIGHTS[name] for name in names]
        steps: dict[str, Callable[[Node], None]] = {name: getattr(self, name) for name in names}
        for name in self.rng.choices(names, weights, k=STEPS_A_WALK):
            steps[name](self.cluster.nodes[self.rng.choice(BROKERS)])
            self._shed()
            check(self.cluster)
        end_faults(self.cluster)

    def _shed(self) -> None:
        """Keep the wire short, by losing what will be sent again."""
        wire = self.cluster.wire
        place = self.rng.randrange(max(1, len(wire)))
        if len(wire) > WIRE_LIMIT and isinstance(wire[place].payload, REPEATABLE):
            del wire[place]

    def _deliver_new(self, before: int) -> None:
        for _ in range(3):
            sent = self.cluster.wire[before:]
            del self.cluster.wire[before:]
            for message in sent:
                self.cluster.deliver(message)

    # The steps; each is given a broker at random.

    def produce(self, node: Node) -> None:
        leader = true_leader(self.cluster)
        chosen = leader if leader and self.rng.random() < 0.7 else node
        if chosen.alive:
            self.cluster.produce(chosen)

    def fill(self, node: Node) -> None:
        if node.alive:
            self.cluster.fill(node)

    def fetch_later(self, node: Node) -> None:
        self.cluster.fetch(node)

    def fetch_now(self, node: Node) -> None:
        for _ in range(self.rng.randint(1, 4)):
            before = len(self.cluster.wire)
            self.cluster.fetch(node)
            self._deliver_new(before)

    def all_fetch(self, _: Node) -> None:
        for node in self.cluster.nodes.values():
            self.fetch_now(node)

    def deliver(self, _: Node) -> None:
        wire = self.cluster.wire
        if wire:
            self.cluster.deliver(wire.pop(self.rng.randrange(len(wire))))

    def deliver_a_copy(self, _: Node) -> None:
        if self.cluster.wire:
            self.cluster.deliver(self.rng.choice(self.cluster.wire))

    def lose(self, _: Node) -> None:
        wire = self.cluster.wire
        place = self.rng.randrange(max(1, len(wire)))
        if wire and isinstance(wire[place].payload, REPEATABLE):
            del wire[place]

    def tick(self, node: Node) -> None:
        self.cluster.now_ms += self.rng.choice((1, 11))
        if node.alive:
            self.cluster.effects(node, node.replica.tick(self.cluster.now_ms))
            role = node.replica.role
            if isinstance(role, Leader) and role.insync.proposal:
                self.cluster.propose(node, role.insync.proposal)

    def store_answers(self, _: Node) -> None:
        if self.cluster.writes:
            self.cluster.take_write()

    def controller_receives(self, _: Node) -> None:
        if self.cluster.session_changes:
            self.cluster.deliver_oldest_session_change()

    def agree(self, _: Node) -> None:
        before = len(self.cluster.wire)
        self.cluster.deliver_session_changes()
        self.cluster.flush_writes()
        self._deliver_new(before)
        self.cluster.flush_writes()

    def replace_controller(self, _: Node) -> None:
        self.cluster.replace_controller()

    def elect(self, node: Node) -> None:
        self.cluster.command(self.cluster.controller.elect(PARTITION, BrokerId(node.id)))

    def crash(self, node: Node) -> None:
        self.cluster.crash(node)

    def stop(self, node: Node) -> None:
        if node.alive:
            self.cluster.stop(node)

    def lose_records(self, node: Node) -> None:
        if self.losses_left:
            self.losses_left -= 1
            self.cluster.lose_records(node, self.rng.randint(0, len(node.log)))

    def restart(self, node: Node) -> None:
        if not node.alive:
            known = node.replica.log.high_watermark
            self.cluster.restart(node, Offset(self.rng.randint(0, known)))

    def end_session(self, node: Node) -> None:
        self.cluster.end_session(node)

    def register_again(self, node: Node) -> None:
        if node.alive and node.id not in self.cluster.sessions:
            self.cluster.register(node)


WEIGHTS = {
    "produce": 60,
    "fill": 30,
    "fetch_later": 40,
    "fetch_now": 140,
    "all_fetch": 15,
    "deliver": 100,
    "deliver_a_copy": 40,
    "lose": 20,
    "tick": 40,
    "store_answers": 60,
    "controller_receives": 40,
    "agree": 30,
    "replace_controller": 3,
    "elect": 10,
    "crash": 10,
    "stop": 6,
    "lose_records": 3,
    "restart": 40,
    "end_session": 10,
    "register_again": 30,
}
ESSENTIAL = ("produce", "fetch_now", "deliver", "agree", "restart", "register_again")


def walk(seed: int, rules: Rules, minimum: int = 2) -> None:
    """One seed's schedule; raises AssertionError if a check fails."""
    Walk(seed, rules, minimum).run()
