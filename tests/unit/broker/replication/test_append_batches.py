"""Batches before their append."""

from holdfast.broker.replication.append_batches import fitting, split
from holdfast.protocol.records import (
    NewRecord,
    build_batch,
    parse_header,
)


def test_writes_are_no_larger_than_a_segment_unless_one_batch_is() -> None:
    batches = [memoryview(bytes(size)) for size in (4, 4, 4, 20, 1)]
    parts = [[len(one) for one in batches[part]] for part in fitting(batches, 10)]
    assert parts == [[4, 4], [4], [20], [1]]
    assert list(fitting(batches, 100)) == [slice(0, 5)]


def test_a_buffer_is_split_where_its_batches_begin() -> None:
    parts = [build_batch([NewRecord(b"x" * size)]) for size in (1, 50, 3)]
    joined = memoryview(b"".join(parts))
    headers = [parse_header(part) for part in parts]
    assert [bytes(one) for one in split(joined, headers)] == [bytes(part) for part in parts]
