"""kafkajs against three brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.adapters.kafka_js import KafkaJs
from tests.clients.cases import Case, cases_of
from tests.clients.world import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[KafkaJs]:
    made = KafkaJs(world.bootstrap)
    yield made
    made.close()


@cases_of(KafkaJs)
def test_kafkajs(case: Case, client: KafkaJs, world: World) -> None:
    case(client, world)
