"""franz-go against three brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.adapters.franz_go import FranzGo
from tests.clients.cases import Case, cases_of
from tests.clients.world import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[FranzGo]:
    made = FranzGo(world.bootstrap)
    yield made
    made.close()


@cases_of(FranzGo)
def test_franz_go(case: Case, client: FranzGo, world: World) -> None:
    case(client, world)
