"""The batches that a leader keeps in memory for its followers."""

import gc
import weakref

from holdfast.broker.replication.append_cache import LARGEST_TAIL, AppendCache, AppendCacheMemory


class Frame(bytearray):
    """A request's bytes, to which weak references are possible."""


def tail_of(*sizes: int) -> AppendCache:
    """Batches of one record each, from offset 10 on."""
    tail = AppendCache(AppendCacheMemory())
    for place, size in enumerate(sizes):
        tail.add(10 + place, 11 + place, memoryview(bytes([place]) * size))
    return tail


def test_it_gives_whole_batches_from_exactly_the_requested_offset() -> None:
    tail = tail_of(5, 5, 5)
    assert bytes(tail.read(11, 100, 13) or b"") == b"\x01" * 5 + b"\x02" * 5


def test_it_gives_one_batch_at_least_and_then_no_more_than_fits() -> None:
    tail = tail_of(5, 5, 5)
    assert bytes(tail.read(10, 1, 13) or b"") == b"\x00" * 5
    assert bytes(tail.read(10, 14, 13) or b"") == b"\x00" * 5 + b"\x01" * 5


def test_it_gives_nothing_at_or_above_the_limit() -> None:
    tail = tail_of(5, 5, 5)
    assert bytes(tail.read(10, 100, 12) or b"") == b"\x00" * 5 + b"\x01" * 5
    assert tail.read(12, 100, 12) is None


def test_other_offsets_are_read_from_the_log() -> None:
    tail = AppendCache(AppendCacheMemory())
    assert tail.read(0, 100, 5) is None
    tail.add(10, 15, memoryview(b"batch of five"))
    assert tail.read(9, 100, 15) is None
    assert tail.read(12, 100, 15) is None, "an offset inside a batch"


def test_committed_batches_are_forgotten() -> None:
    tail = tail_of(5, 5, 5)
    tail.trim(12)
    assert tail.read(11, 100, 13) is None
    assert tail.read(12, 100, 13) is not None
    tail.clear()
    assert tail.read(12, 100, 13) is None


def test_it_is_bounded_whatever_followers_do() -> None:
    tail = AppendCache(AppendCacheMemory())
    block = memoryview(bytes(LARGEST_TAIL // 4))
    for offset in range(20):
        tail.add(offset, offset + 1, block)
    held = [offset for offset in range(20) if tail.read(offset, 1, 20) is not None]
    assert held == [16, 17, 18, 19]


def test_a_small_batch_does_not_keep_its_request_in_memory() -> None:
    frame = Frame(1 << 20)
    gone = weakref.ref(frame)
    tail = AppendCache(AppendCacheMemory())
    tail.add(0, 1, memoryview(frame)[100:200])
    del frame
    gc.collect()
    assert gone() is None
    assert tail.read(0, 1, 1) == bytes(100)


def test_a_large_batch_is_not_copied_and_counts_with_its_request() -> None:
    memory = AppendCacheMemory()
    frame = bytearray(1000)
    tail = AppendCache(memory)
    tail.add(0, 1, memoryview(frame)[100:900])
    assert memory.bytes == 1000
    read = tail.read(0, 1, 1)
    assert isinstance(read, memoryview)
    assert read.obj is frame
    tail.trim(1)
    assert memory.bytes == 0


def test_all_tails_together_are_bounded() -> None:
    memory = AppendCacheMemory(10_000)
    tails = [AppendCache(memory) for _ in range(20)]
    for tail in tails:
        tail.add(0, 1, memoryview(bytes(1000)))
    assert memory.bytes == 10_000
    assert sum(map(bool, tails)) == 10, "the others are read from the log"
    for tail in tails[:10]:
        tail.clear()
    tails[19].add(1, 2, memoryview(bytes(1000)))
    assert memory.bytes == 1000
