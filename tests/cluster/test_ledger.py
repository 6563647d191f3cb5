"""The ledger: acknowledged records, and the check that they exist."""

from __future__ import annotations

import pytest

from holdfast.cluster import AckedLossError, Acknowledgement, Ledger
from holdfast.cluster.client.producer import CheckedProducer
from holdfast.cluster.client.records import Kept


def ledger(*offsets: int) -> Ledger:
    made = Ledger()
    for offset in offsets:
        made.acknowledged(Acknowledgement("t", 0, offset, None, b"v%d" % offset))
    return made


def kept(*offsets: int) -> list[Kept]:
    return [Kept(offset, None, b"v%d" % offset) for offset in offsets]


def test_all_there() -> None:
    assert ledger(0, 1, 2).check("t", 0, 0, kept(0, 1, 2, 3)) == []


def test_what_is_gone_is_lost() -> None:
    [finding] = ledger(0, 1, 2).check("t", 0, 0, kept(0, 2))
    assert (finding.kind, finding.acknowledgement.offset) == ("lost", 1)
    assert str(finding) == "t-0 offset 1: b'v1' was acknowledged and is gone"


def test_another_record_in_its_place_is_reported() -> None:
    [finding] = ledger(0).check("t", 0, 0, [Kept(0, None, b"other")])
    assert finding.kind == "changed"
    assert "b'other' is there" in str(finding)
    [finding] = ledger(0).check("t", 0, 0, [Kept(0, b"key", b"v0")])
    assert finding.kind == "changed"


def test_what_retention_took_is_not_lost() -> None:
    assert ledger(0, 1, 2).check("t", 0, 2, kept(2)) == []


def test_other_partitions_are_none_of_our_business() -> None:
    assert ledger(0).check("t", 1, 0, []) == []
    assert ledger(0).partitions() == [("t", 0)]


def test_the_error_names_some_and_counts_the_rest() -> None:
    error = AckedLossError(ledger(*range(12)).check("t", 0, 0, []), 12)
    assert "12 of 12 acknowledged records" in str(error)
    assert "and 2 more" in str(error)
    assert isinstance(error, AssertionError)


@pytest.mark.parametrize(("offset", "acknowledgements"), [(7, 1), (-1001, 0)])
def test_what_is_acknowledged_without_an_offset_cannot_be_checked(
    offset: int, acknowledgements: int
) -> None:
    """Librdkafka has none where a retry found its record stored."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    made = Ledger()
    producer = CheckedProducer(made, "127.0.0.1:1", {"log_level": 0})
    message = confluent_kafka.Message(topic="t", partition=0, offset=offset, value=b"v")
    producer._delivered(None, message)
    assert (len(made.acknowledgements), made.refused) == (acknowledgements, 0)
