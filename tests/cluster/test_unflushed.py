"""What `take_unflushed` leaves is what a power failure may leave, as `byte_disk` has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.broker.faults.faulty_disk import FaultyDisk
from holdfast.simulation.disk.byte_disk import ByteDisk, DirectoryNode, FileNode, apply
from holdfast.storage.disk import Disk, write_whole
from holdfast.storage.power_loss.unflushed_bytes import JOURNAL, KEPT, take_unflushed
from tests.support.disks import close_files

NAMES = ("a", "b", "c")
DIRECTORIES = ("", "x", "y")


class Both:
    """The same calls to a real disk and to a simulated one."""

    def __init__(self, folder: Path) -> None:
        self.root, self.side = folder / "log", folder / "side"
        self.root.mkdir()
        self.real = FaultyDisk(self.root, self.side)
        self.simulated = ByteDisk()

    def disks(self) -> tuple[Disk, Disk]:
        return self.real, self.simulated

    def call(self, verb: str, *args: object) -> None:
        failures = [failure_of(disk, verb, *args) for disk in self.disks()]
        assert failures[0] == failures[1], (verb, args)

    def crash(self) -> None:
        """The process dies and a new one takes over; nothing is lost."""
        assert self.real.journal is not None
        self.real.journal.close()
        self.real = FaultyDisk(self.root, self.side)

    def check(self) -> None:
        assert self.real.journal is not None
        self.real.journal.close()
        take_unflushed(str(self.root), str(self.side))
        compare(self.root, self.simulated.root)
        assert [*(self.side / KEPT).iterdir()] == []


def failure_of(disk: Disk, verb: str, *args: object) -> bool:
    try:
        match verb, args:
            case "append", (str(path), bytes(data)):
                file = disk.open(path)
                file.append([data])
                file.close()
            case "truncate", (str(path), int(size)):
                file = disk.open(path)
                if size <= file.size:
                    file.truncate(size)
                file.close()
            case "flush", (str(path),):
                file = disk.open(path)
                file.flush()
                file.close()
            case "create", (str(path),):
                disk.open(path, create=True).close()
            case "replace", (str(path), bytes(data)):
                write_whole(disk, path, data)
            case _:
                getattr(disk, verb)(*args)
    except (OSError, AssertionError):
        return True
    return False


def compare(at: Path, expected: DirectoryNode) -> None:
    """Names as last flushed; of each file, what some first of its pending changes leave."""
    assert sorted(entry.name for entry in at.iterdir()) == sorted(expected.flushed)
    for name, node in expected.flushed.items():
        if isinstance(node, FileNode):
            content = bytearray(node.flushed)
            outcomes = [bytes(content)]
            for change in node.pending:
                apply(content, change)
                outcomes.append(bytes(content))
            left = (at / name).read_bytes()
            assert left in outcomes, name
            assert len(left) == min(map(len, outcomes)), f"{name}: unflushed bytes survived"
        else:
            compare(at / name, node)


paths = st.builds(
    lambda directory, name: f"{directory}/{name}" if directory else name,
    st.sampled_from(DIRECTORIES),
    st.sampled_from(NAMES),
)
calls = st.one_of(
    st.tuples(st.just("create"), paths),
    st.tuples(st.just("append"), paths, st.binary(min_size=1, max_size=5)),
    st.tuples(st.just("append"), paths, st.binary(min_size=1, max_size=5)),
    st.tuples(st.just("truncate"), paths, st.integers(0, 8)),
    st.tuples(st.just("flush"), paths),
    st.tuples(st.just("replace"), paths, st.binary(min_size=1, max_size=5)),
    st.tuples(st.just("remove"), paths),
    st.tuples(st.just("flush_directory"), st.sampled_from(DIRECTORIES)),
    st.tuples(st.just("create_directory"), st.sampled_from(("x", "y", "z"))),
    st.tuples(st.just("remove_directory"), st.sampled_from(("x", "y", "z"))),
    st.builds(
        lambda directory, old, new: ("rename", f"{directory}{old}", f"{directory}{new}"),
        st.sampled_from(("", "x/", "y/")),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    st.sampled_from((("rename", "x", "z"), ("rename", "z", "x"), ("crash",))),
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(steps=st.lists(calls, min_size=5, max_size=40))
def test_a_power_failure_leaves_what_was_flushed(
    steps: list[tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    both = Both(tmp_path_factory.mktemp("power"))
    for call in [("create_directory", "x"), ("create", "a"), ("create", "x/a"), *steps]:
        if call[0] == "crash":
            both.crash()
        elif not is_odd(both.simulated, call):
            both.call(str(call[0]), *call[1:])
    both.check()


def is_odd(disk: ByteDisk, call: tuple[object, ...]) -> bool:
    """Calls on which the simulated disk differs from a system's. Nobody makes them."""
    kinds = [node_kind(disk, str(path)) for path in call[1:] if isinstance(path, str)]
    match call[0]:
        case "rename":
            return call[1] == call[2] or kinds[0] is None or DirectoryNode in kinds[1:]
        case "append" | "truncate" | "flush" | "remove" | "replace":
            return kinds[0] is DirectoryNode
        case _:
            return False


def node_kind(disk: ByteDisk, path: str) -> type | None:
    node: object = disk.root
    for part in path.split("/") if path else ():
        if not isinstance(node, DirectoryNode) or part not in node.visible:
            return None
        node = node.visible[part]
    return type(node)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FaultyDisk]:
    (tmp_path / "log").mkdir()
    disk = FaultyDisk(tmp_path / "log", tmp_path / "side")
    yield disk
    close_files(disk)


def lose_power(disk: FaultyDisk) -> dict[str, tuple[int, int]]:
    assert disk.journal is not None
    disk.journal.close()
    return take_unflushed(disk.root, str(Path(disk.root).parent / "side"))


def test_it_returns_what_it_truncated(disk: FaultyDisk) -> None:
    file = disk.open("a", create=True)
    file.append([b"kept"])
    file.flush()
    disk.flush_directory("")
    file.append([b"lost"])
    assert lose_power(disk) == {"a": (8, 4)}


def test_a_flush_of_the_file_is_not_one_of_its_name(disk: FaultyDisk) -> None:
    file = disk.open("a", create=True)
    file.append([b"kept"])
    file.flush()
    lose_power(disk)
    assert not disk.exists("a")


def test_bytes_after_a_truncation_are_not_covered_by_the_flush_before_it(disk: FaultyDisk) -> None:
    file = disk.open("a", create=True)
    file.append([b"0123456789"])
    file.flush()
    disk.flush_directory("")
    file.truncate(4)
    file.append([b"new"])
    lose_power(disk)
    assert (Path(disk.root) / "a").read_bytes() == b"0123"


def test_what_was_there_before_the_journal_is_taken_for_flushed(tmp_path: Path) -> None:
    (tmp_path / "log" / "t-0").mkdir(parents=True)
    (tmp_path / "log" / "t-0" / "old").write_bytes(b"old")
    disk = FaultyDisk(tmp_path / "log", tmp_path / "side")
    disk.open("t-0/old").append([b"new"])
    lose_power(disk)
    assert (tmp_path / "log" / "t-0" / "old").read_bytes() == b"old"


def test_without_a_journal_nothing_is_touched(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"mine")
    assert take_unflushed(str(tmp_path), str(tmp_path / "side")) == {}
    assert (tmp_path / "a").read_bytes() == b"mine"


@pytest.mark.parametrize("line", ['["rename","a.tmp","a"]', '["remove","a"]', '["create","b"]'])
def test_a_last_line_that_was_never_done_is_struck_out(disk: FaultyDisk, line: str) -> None:
    """Killed between writing it down and doing it."""
    write_whole(disk, "a", b"content")
    temporary = disk.open("a.tmp", create=True)
    temporary.append([b"newer"])
    temporary.flush()
    disk.flush_directory("")
    assert disk.journal is not None
    disk.journal.close()
    side = Path(disk.root).parent / "side"
    with (side / JOURNAL).open("a") as journal:
        journal.write(f"{line}\n")
    take_unflushed(disk.root, str(side))
    assert (Path(disk.root) / "a").read_bytes() == b"content"
    assert (Path(disk.root) / "a.tmp").read_bytes() == b"newer"


def test_a_torn_last_line_is_ignored(disk: FaultyDisk) -> None:
    write_whole(disk, "a", b"content")
    assert disk.journal is not None
    disk.journal.close()
    side = Path(disk.root).parent / "side"
    with (side / JOURNAL).open("a") as journal:
        journal.write('["remove","')
    take_unflushed(disk.root, str(side))
    assert (Path(disk.root) / "a").read_bytes() == b"content"


def test_the_journal_stays_short(disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.storage.power_loss.unflushed_bytes.LONGEST_BYTES", 2000)
    file = disk.open("a", create=True)
    disk.flush_directory("")
    for _ in range(500):
        file.append([b"x"])
        file.flush()
    file.append([b"lost"])
    side = Path(disk.root).parent / "side"
    assert (side / JOURNAL).stat().st_size < 4000
    lose_power(disk)
    assert (Path(disk.root) / "a").stat().st_size == 500


def test_a_failed_rename_leaves_no_trace(disk: FaultyDisk) -> None:
    write_whole(disk, "a", b"content")
    with pytest.raises(FileNotFoundError):
        disk.rename("nothing", "a")
    lose_power(disk)
    assert (Path(disk.root) / "a").read_bytes() == b"content"
