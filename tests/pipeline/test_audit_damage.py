"""Copies of our own brokers, spoiled: test_apache_kafka.py has the same of Apache Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.audit_damage import DamageTests, Files
from tests.pipeline.audit_plants import Estate, make_estate
from tests.pipeline.audit_world import TOPIC

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return make_estate(tmp_path_factory.mktemp("estate") / "original")


@pytest.fixture
def files(original: Estate, tmp_path: Path) -> Files:
    estate = original.copy(tmp_path / "copy")
    return Files(estate.logs, estate.ledger, TOPIC)


class TestDamage(DamageTests):
    """With the cluster's own store, and without."""
