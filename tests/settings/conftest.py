"""Clusters that the tests of settings share; each test has its own topics and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pytest

from holdfast.broker.settings import TOPIC as TOPIC_SETTINGS
from tests.settings.servers import BROKER, Server, Servers

QUICK = {
    # No test waits five minutes for retention and fifteen seconds for the cleaner.
    "log.retention.check.interval.ms": "100",
    "log.cleaner.backoff.ms": "100",
}


class Given(NamedTuple):
    """Two topics with one replica each, which differ in one setting."""

    server: Server
    topic: str
    """Has the setting."""
    other_server: Server
    other: str
    """Has the default."""


Give = Callable[..., Given]


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Two brokers that differ only while a test has changed one."""
    servers = Servers(tmp_path_factory.mktemp("pair"), QUICK, QUICK)
    try:
        servers.start(controller=2)
        yield servers
    finally:
        servers.close()


@pytest.fixture
def given(pair: Servers) -> Iterator[Give]:
    """Gives two topics: the first one, or its broker, has the setting."""
    altered: list[str] = []

    def give(name: str, value: str, config: Mapping[str, str] | None = None) -> Given:
        config = dict(config or {})
        own = config
        if name in TOPIC_SETTINGS and not name.startswith("broker:"):
            own = config | {name: value}
        else:
            name = name.removeprefix("broker:")
            pair.alter(BROKER, "1", name, value)
            altered.append(name)
        return Given(pair[1], pair.topic(1, config=own), pair[2], pair.topic(2, config=config))

    yield give
    for name in altered:
        pair.alter(BROKER, "1", name, None)
