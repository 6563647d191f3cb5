"""Takes from a disk what a power failure would have taken.

A process that is killed leaves everything it wrote in the page cache; a machine that loses power
does not. To show the second without a power failure, something must record what was flushed. A
`Journal` records every change of a name and every flush, beside the log directory. After a kill,
`take_unflushed` returns the files to their durable state:

- a file is truncated to what its last flush covered. A truncation counts as durable, as if the
  system had written it back by itself: the bytes it removed are not stored anywhere;
- a name created, moved or removed since the last flush of its directory is as it was at that flush.
  Until then, files without a name stay as hard links in `kept`.

`byte_disk` can give both outcomes for a power failure; of all its outcomes this one keeps least.
The journal does not record appends, so a write costs nothing more; a flush costs one small write.

The journal records a change before it is made, and a flush after it. A process that dies in between
leaves a last line whose change was not made; the next process that opens the journal sees that on
the disk and removes the line.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from holdfast.storage.power_loss.flushed_names import Change, Directory, FileName, NameTree

T = TypeVar("T")

JOURNAL: Final = "journal"
KEPT: Final = "kept"
LONGEST_BYTES: Final = 4 * 1024 * 1024
"""A longer journal is replaced by one with the current state."""

_CREATES: Final = ("create", "create_directory")
_CHANGES: Final = (*_CREATES, "rename", "remove", "truncate")
"""Recorded before they are made."""


def unflushed_of(log: Path) -> Path:
    """The `side` of a log directory: the directory of its journal."""
    return log.with_name(f"{log.name}-unflushed")


class Journal:
    """The names and flushed sizes of one log directory. From any thread."""

    def __init__(self, root: str, side: str) -> None:
        """`side`: a directory of our own, on the same file system as `root` and outside it."""
        self._root = Path(root)
        self._side = Path(side)
        self._lock = threading.Lock()
        (self._side / KEPT).mkdir(parents=True, exist_ok=True)
        self._tree = _load(self._root, self._side)
        self._descriptor = -1
        self._size = 0
        self._begin()

    def _begin(self) -> None:
        """Start a new journal file with the current state."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._size = _write_state(self._side, self._tree)

    def note(self, *change: str | int) -> None:
        """Record a flush that is done: flush, flush_directory."""
        with self._lock:
            no_longer_kept = self._tree.apply(change)
            self._write(change)
            for number in no_longer_kept:
                (self._side / KEPT / str(number)).unlink(missing_ok=True)

    def around(self, make: Callable[[], T], *change: str | int) -> T:
        """Record a change, then make it; removes the record if the change fails."""
        assert change[0] in _CHANGES, change
        with self._lock:
            if change[0] in _CREATES and not self._can_create(self._root / str(change[1])):
                return make()  # which fails; recorded, it would look like a new file
            self._keep(change)
            self._tree.apply(change)
            self._write(change)
            try:
                return make()
            except OSError:
                self._tree.strike_out()
                self._write(("failed",))
                raise

    @staticmethod
    def _can_create(full: Path) -> bool:
        return full.parent.is_dir() and not full.exists()

    def _keep(self, change: Change) -> None:
        """Give a file that loses its name another one, below `kept`."""
        if change[0] not in ("rename", "remove"):
            return
        name = str(change[2] if change[0] == "rename" else change[1])
        node = self._tree.find(name)
        if isinstance(node, FileName):
            kept = self._side / KEPT / str(node.number)
            kept.unlink(missing_ok=True)  # of a change that failed
            with contextlib.suppress(FileNotFoundError):
                os.link(self._root / name, kept)

    def _write(self, change: Change) -> None:
        line = json.dumps(change, separators=(",", ":")).encode() + b"\n"
        os.write(self._descriptor, line)
        self._size += len(line)
        if self._size > LONGEST_BYTES:
            self._begin()

    def close(self) -> None:
        """Close the handle; the file stays for the next process."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1


def take_unflushed(root: str, side: str) -> dict[str, tuple[int, int]]:
    """Return a dead broker's files to their flushed state; returns each file's old and new size.

    A removed file has the new size 0. The process that wrote the files must have ended. Without a
    journal nothing is changed.
    """
    top, beside = Path(root), Path(side)
    if not (beside / JOURNAL).exists():
        return {}
    tree = _load(top, beside)
    before = _sizes(top)
    _Undoing(beside / KEPT).put_back(top, tree.root)
    for path, file in tree.files():
        full = top / path
        if full.exists() and full.stat().st_size > file.flushed:
            os.truncate(full, file.flushed)
    shutil.rmtree(beside / KEPT, ignore_errors=True)
    (beside / KEPT).mkdir()
    fresh = NameTree()
    _adopt(top, fresh.root, fresh)
    descriptor, _ = _write_state(beside, fresh)
    os.close(descriptor)
    after = _sizes(top)
    return {
        path: (size, after.get(path, 0))
        for path, size in before.items()
        if size > after.get(path, 0)
    }


def _sizes(top: Path) -> dict[str, int]:
    files = (path for path in sorted(top.rglob("*")) if path.is_file())
    return {path.relative_to(top).as_posix(): path.stat().st_size for path in files}


class _Undoing:
    """Undoes changes of names, newest first, on the disk and in the tree."""

    def __init__(self, kept: Path) -> None:
        self._kept = kept

    def put_back(self, at: Path, directory: Directory) -> None:
        """Depth first: a directory's names are restored while it still has its newest name."""
        for name, node in tuple(directory.names.items()):
            if isinstance(node, Directory):
                self.put_back(at / name, node)
        pending, directory.pending = directory.pending, []
        for undo in reversed(pending):
            undo.take_back(directory)
            match undo.kind:
                case "create":
                    _remove(at / undo.name)
                case "rename":
                    with contextlib.suppress(FileNotFoundError):
                        (at / undo.new_name).rename(at / undo.name)
                    if undo.replaced is not None:
                        self._bring_back(undo.replaced, at / undo.new_name)
                case "remove" if isinstance(undo.removed, FileName):
                    self._bring_back(undo.removed, at / undo.name)
                case _:
                    assert isinstance(undo.removed, Directory), undo
                    (at / undo.name).mkdir(exist_ok=True)
                    self.put_back(at / undo.name, undo.removed)

    def _bring_back(self, file: FileName, full: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._kept / str(file.number)).rename(full)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write_state(side: Path, tree: NameTree) -> tuple[int, int]:
    """Replace the journal by one with a single line; returns its descriptor and size."""
    line = json.dumps(["state", tree.to_json()], separators=(",", ":")).encode() + b"\n"
    temporary = side / f"{JOURNAL}.tmp"
    temporary.write_bytes(line)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    temporary.rename(side / JOURNAL)
    return descriptor, len(line)


def _load(root: Path, side: Path) -> NameTree:
    """Load the journal, and reconcile it with the disk."""
    tree = NameTree()
    last: Any = None
    with contextlib.suppress(FileNotFoundError):
        for line in (side / JOURNAL).read_bytes().splitlines():
            try:
                last = json.loads(line)
            except ValueError:
                break  # the process died while it wrote this line, before it made the change
            if last[0] == "state":
                tree = NameTree.from_json(last[1])
            elif last[0] == "failed":
                tree.strike_out()
            else:
                tree.apply(tuple(last))
    if last is not None and last[0] in ("rename", "remove") and (root / last[1]).exists():
        tree.strike_out()  # The name still exists, and no later line gave it to another file.
    _adopt(root, tree.root, tree)
    return tree


def _adopt(at: Path, directory: Directory, tree: NameTree) -> None:
    """Add unrecorded names as flushed, and remove names that do not exist."""
    found = {entry.name: entry for entry in os.scandir(at)} if at.is_dir() else {}
    for name in [name for name in directory.names if name not in found]:
        del directory.names[name]
    for name, entry in found.items():
        is_directory = entry.is_dir(follow_symlinks=False)
        node = directory.names.get(name)
        if node is None:
            node = Directory() if is_directory else tree.new_file(entry.stat().st_size)
            directory.names[name] = node
        if isinstance(node, Directory) and is_directory:
            _adopt(at / name, node, tree)
