"""kcat against three brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.adapters.kcat import KcatClient
from tests.clients.cases import Case, cases_of
from tests.clients.world import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[KcatClient]:
    made = KcatClient(world.bootstrap)
    yield made
    made.close()


@cases_of(KcatClient)
def test_kcat(case: Case, client: KcatClient, world: World) -> None:
    case(client, world)
