"""The records of one write become batches."""

from __future__ import annotations

import pytest

from holdfast.broker.coordinator.log_writes import split
from holdfast.protocol.records import Batch, BatchOptions, read_records


@pytest.mark.parametrize(("limit", "batches"), [(100_000, 1), (900, 2), (150, 20), (120, 0)])
def test_records_are_split_by_size_and_keep_their_order(limit: int, batches: int) -> None:
    pairs = [(b"key %d" % index, bytes(32)) for index in range(20)]
    built = split(pairs, 5, limit, BatchOptions()) or []
    assert len(built) == batches
    assert all(len(one) <= limit for one in built)
    read = [record for one in built for record in read_records(Batch(one))]
    found = [(bytes(one.key or b""), bytes(one.value or b"")) for one in read]
    assert found == (pairs if batches else [])
    assert all(one.timestamp == 5 for one in read)
