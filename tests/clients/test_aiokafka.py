"""aiokafka against three brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.adapters.aio import Aio
from tests.clients.cases import Case, cases_of
from tests.clients.world import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[Aio]:
    made = Aio(world.bootstrap)
    yield made
    made.close()


@cases_of(Aio)
def test_aiokafka(case: Case, client: Aio, world: World) -> None:
    case(client, world)
