"""Kafka's own command-line tools against three brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.adapters.java_tools import JavaTools
from tests.clients.cases import Case, cases_of
from tests.clients.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[JavaTools]:
    made = JavaTools(world.bootstrap)
    yield made
    made.close()


@cases_of(JavaTools)
def test_java_tools(case: Case, client: JavaTools, world: World) -> None:
    case(client, world)
