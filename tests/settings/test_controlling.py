"""The effects of the settings of a controller, and of a broker that stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cluster.client.admin import reassign
from tests.settings.servers import Servers
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

PATIENT = {"broker.session.timeout.ms": "600000"}
SOON = {"leader.imbalance.check.interval.seconds": "1"}


class Balance:
    """Two brokers, and a topic whose first partition is not led by its preferred leader."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.servers = Servers(folder, settings, settings)

    def start(self) -> None:
        self.servers.start()
        self.topic = self.servers.topic(1, 2, partitions=2)

    def unbalance(self) -> None:
        """Change the preferred leader of partition 0."""
        leader = self.leader()
        with self.servers.client() as client:
            reassign(client, self.topic, 0, [3 - leader, leader])

    def wait_leader(self, wanted: int) -> None:
        wait_until(lambda: self.leader() == wanted, f"the preferred leader {wanted} leads")

    def leader(self) -> int:
        return self.servers.partition(self.topic).leader_id


@pytest.fixture
def balances(tmp_path: Path) -> Iterator[dict[str, Balance]]:
    made = {
        "moves": Balance(tmp_path / "moves", SOON),
        "auto.leader.rebalance.enable": Balance(
            tmp_path / "off", SOON | {"auto.leader.rebalance.enable": "false"}
        ),
        "leader.imbalance.per.broker.percentage": Balance(
            tmp_path / "all", SOON | {"leader.imbalance.per.broker.percentage": "100"}
        ),
        "leader.imbalance.check.interval.seconds": Balance(tmp_path / "rarely", {}),
    }
    try:
        for one in made.values():
            one.start()
        yield made
    finally:
        for one in made.values():
            one.servers.close()


def test_auto_leader_rebalance(balances: dict[str, Balance]) -> None:
    """auto.leader.rebalance.enable, leader.imbalance.per.broker.percentage and
    leader.imbalance.check.interval.seconds: a preferred leader gets its partition back, except
    where rebalancing is off, where full imbalance is allowed, and before the first check.
    """
    moves = balances["moves"]
    stay = {name: one for name, one in balances.items() if one is not moves}
    before = {name: one.leader() for name, one in stay.items()}
    for one in stay.values():
        one.unbalance()
    for _ in range(3):  # Two whole seconds between the first and the last: the others have checked.
        wanted = 3 - moves.leader()
        moves.unbalance()
        moves.wait_leader(wanted)
    assert {name: one.leader() for name, one in stay.items()} == before


def test_controlled_shutdown(tmp_path: Path) -> None:
    """controlled.shutdown.enable, controlled.shutdown.max.retries and
    controlled.shutdown.retry.backoff.ms, of brokers whose controller does not answer.
    """
    never, hour = "1000000", "3600000"
    quick = {"controlled.shutdown.retry.backoff.ms": "100", "controlled.shutdown.max.retries": "0"}
    servers = Servers(
        tmp_path,
        PATIENT,
        PATIENT | quick,
        PATIENT | quick | {"controlled.shutdown.retry.backoff.ms": hour},
        PATIENT | quick | {"controlled.shutdown.max.retries": never},
        PATIENT | {"controlled.shutdown.enable": "false"},
    )
    tried = "stopping although we still lead partitions"
    try:
        servers.start(controller=1)
        servers[1].pause()
        for number in (3, 4, 2, 5):
            servers[number].terminate()
        wait_until(lambda: not (servers[2].is_running or servers[5].is_running), "two have stopped")
        assert [tried in servers[number].said() for number in (2, 3, 4, 5)] == [
            True,
            False,
            False,
            False,
        ]
        assert servers[3].is_running
        assert servers[4].is_running
    finally:
        servers.close()
