"""confluent-kafka against three brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.adapters.confluent import Confluent
from tests.clients.cases import Case, cases_of
from tests.clients.world import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[Confluent]:
    made = Confluent(world.bootstrap)
    yield made
    made.close()


@cases_of(Confluent)
def test_confluent(case: Case, client: Confluent, world: World) -> None:
    case(client, world)
