"""Damaged copies of Holdfast's brokers: test_apache_kafka.py has the same of Apache Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.pipeline.audit.controllers.kraft_metadata import METADATA
from holdfast.pipeline.audit.findings.findings import Exit
from tests.pipeline.audit_damage import DamageTests, Files
from tests.pipeline.audit_plants import Estate, make_estate
from tests.pipeline.audit_world import TOPIC
from tests.pipeline.test_audit_kraft import NEWER, batch

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


def test_a_metadata_log_that_is_newer_than_we_are_costs_only_the_witness(files: Files) -> None:
    files.forget_metadata()
    log = files.logs["b1"] / METADATA / f"{0:020}.log"
    log.parent.mkdir()
    log.write_bytes(batch(0, NEWER))
    audit = files.audit()
    assert (audit.verdict.exit_code, audit.findings, audit.missing) == (Exit.GOOD, (), ())
    [note] = audit.notes
    assert str(log.parent) in note
