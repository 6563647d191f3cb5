"""kafka-python against three brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.adapters.kafka_python import KafkaPython
from tests.clients.cases import Case, cases_of
from tests.clients.world import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[KafkaPython]:
    made = KafkaPython(world.bootstrap)
    yield made
    made.close()


@cases_of(KafkaPython)
def test_kafka_python(case: Case, client: KafkaPython, world: World) -> None:
    case(client, world)
