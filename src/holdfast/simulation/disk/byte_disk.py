"""A simulated disk, byte by byte, that tracks which changes have been flushed.

It implements `storage.Disk`. Each file has its visible content, its flushed content and its
unflushed writes; each directory has the same for its names. `power_loss` derives from these what
a power failure may leave.

The disk calls `on_step` with every change before it is made: a test enumerates all crashes at that
point. Faults: a disk may be full, and calls may fail. As on Linux, a failed flush drops the changes
that it should have flushed.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from holdfast.storage.disk import Buffer, DirectoryLockedError, Entry, File, parent


class Write(NamedTuple):
    """Bytes at a position."""

    position: int
    data: bytes


class Truncate(NamedTuple):
    """A new size."""

    size: int


FileChange = Write | Truncate


class FileNode:
    """A file, independent of its name."""

    __slots__ = ("flushed", "pending", "visible")

    def __init__(self, content: bytes = b"") -> None:
        self.visible = bytearray(content)
        """The content that a reader sees."""
        self.flushed = bytes(content)
        """The content that certainly survives a power failure."""
        self.pending: list[FileChange] = []
        """Changes since the last flush, oldest first."""


Renaming = tuple[tuple[str, "Node | None"], ...]
"""Names that change together, each with its new node; None: the name is removed."""


class DirectoryNode:
    """A directory: names and their nodes."""

    __slots__ = ("flushed", "pending", "visible")

    def __init__(self, entries: dict[str, Node] | None = None) -> None:
        self.visible: dict[str, Node] = dict(entries or {})
        self.flushed: dict[str, Node] = dict(self.visible)
        self.pending: list[Renaming] = []


Node = FileNode | DirectoryNode


class Step(NamedTuple):
    """A change that is about to be made."""

    kind: str
    path: str
    file: FileNode | None = None
    change: FileChange | None = None


class Fault(NamedTuple):
    """A call that will fail."""

    kind: str
    """append, truncate, flush, flush_directory, rename, create, remove, read."""
    path_part: str
    error: int = errno.EIO


class ByteDisk:
    """All files of one simulated broker."""

    def __init__(self, root: DirectoryNode | None = None) -> None:
        self.root = root if root is not None else DirectoryNode()
        self.on_step: Callable[[Step], None] | None = None
        self.faults: list[Fault] = []
        self.room: int | None = None
        """Free bytes; None: no limit."""
        self.steps = 0
        self._held: set[str] = set()

    # Called by storage.

    def open(self, path: str, *, create: bool = False) -> ByteFile:
        holder, name = self._holder(path)
        if create:
            if name in holder.visible:
                raise FileExistsError(errno.EEXIST, "exists", path)
            self._step(Step("create", path))
            node: Node = FileNode()
            self._rename(holder, ((name, node),))
        else:
            node = self._node(path)
        if not isinstance(node, FileNode):
            raise IsADirectoryError(errno.EISDIR, "a directory", path)
        return ByteFile(self, path, node)

    def list(self, path: str) -> builtins.list[Entry]:
        node = self._directory(path)
        return [Entry(name, isinstance(it, DirectoryNode)) for name, it in node.visible.items()]

    def names(self, path: str) -> builtins.list[str]:
        return [*self._directory(path).visible]

    def exists(self, path: str) -> bool:
        try:
            self._node(path)
        except FileNotFoundError:
            return False
        return True

    def size(self, path: str) -> int:
        node = self._node(path)
        assert isinstance(node, FileNode)
        return len(node.visible)

    def create_directory(self, path: str) -> None:
        holder, name = self._holder(path)
        if name in holder.visible:
            raise FileExistsError(errno.EEXIST, "exists", path)
        self._step(Step("create", path))
        self._rename(holder, ((name, DirectoryNode()),))

    def rename(self, old: str, new: str) -> None:
        assert parent(old) == parent(new), "renames stay within a directory"
        holder, name = self._holder(old)
        node = self._node(old)
        self._step(Step("rename", old))
        self._rename(holder, ((name, None), (self._holder(new)[1], node)))

    def remove(self, path: str) -> None:
        node = self._node(path)
        assert isinstance(node, FileNode)
        self._step(Step("remove", path))
        holder, name = self._holder(path)
        self._rename(holder, ((name, None),))

    def remove_directory(self, path: str) -> None:
        if self._directory(path).visible:
            raise OSError(errno.ENOTEMPTY, "not empty", path)
        self._step(Step("remove", path))
        holder, name = self._holder(path)
        self._rename(holder, ((name, None),))

    def flush_directory(self, path: str) -> None:
        node = self._directory(path)
        self._step(Step("flush_directory", path))
        node.flushed = dict(node.visible)
        node.pending = []

    def flush_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        for file in files:
            file.flush()
        for path in directories:
            self.flush_directory(path)

    def lock(self, path: str) -> ByteLock:
        if path in self._held:
            raise DirectoryLockedError(f"{path} is held by another process")
        if not self.exists(path):
            self.open(path, create=True)
        self._held.add(path)
        return ByteLock(self._held, path)

    # Inside.

    def _step(self, step: Step) -> None:
        self.steps += 1
        if self.on_step is not None:
            self.on_step(step)
        self.maybe_fail(step.kind, step.path)

    def maybe_fail(self, kind: str, path: str) -> None:
        """Raise if a fault matches this call. Faults stay: a failed disk keeps failing."""
        for fault in self.faults:
            if fault.kind == kind and fault.path_part in path:
                raise OSError(fault.error, "simulated", path)

    @contextlib.contextmanager
    def without_faults(self) -> Iterator[None]:
        """No call fails within this block: for checks from outside the broker."""
        faults, self.faults = self.faults, []
        try:
            yield
        finally:
            self.faults = faults

    def change(self, path: str, node: FileNode, change: FileChange) -> None:
        """Write or truncate."""
        kind = "append" if isinstance(change, Write) else "truncate"
        self._step(Step(kind, path, node, change))
        is_full = False
        if isinstance(change, Write) and self.room is not None:
            is_full = len(change.data) > self.room
            change = Write(change.position, change.data[: self.room])
            self.room -= len(change.data)
        apply(node.visible, change)
        node.pending.append(change)
        if is_full:
            raise OSError(errno.ENOSPC, "no space left", path)

    def flush_file(self, path: str, node: FileNode) -> None:
        """Make the file's content durable, or lose it."""
        try:
            self._step(Step("flush", path, node))
        except OSError:
            node.pending = []
            raise
        node.flushed = bytes(node.visible)
        node.pending = []

    @staticmethod
    def _rename(holder: DirectoryNode, renaming: Renaming) -> None:
        rename_in(holder.visible, renaming)
        holder.pending.append(renaming)

    def _node(self, path: str) -> Node:
        node: Node = self.root
        for part in path.split("/") if path else ():
            if not isinstance(node, DirectoryNode) or part not in node.visible:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            node = node.visible[part]
        return node

    def _directory(self, path: str) -> DirectoryNode:
        node = self._node(path)
        if not isinstance(node, DirectoryNode):
            raise NotADirectoryError(errno.ENOTDIR, "no directory", path)
        return node

    def _holder(self, path: str) -> tuple[DirectoryNode, str]:
        return self._directory(parent(path)), path.rpartition("/")[2]


def apply(content: bytearray, change: FileChange) -> None:
    """Apply a change to a file's content; a hole is filled with zeros."""
    match change:
        case Write(position, data):
            if position > len(content):
                content.extend(bytes(position - len(content)))
            content[position : position + len(data)] = data
        case Truncate(size):
            del content[size:]


def rename_in(entries: dict[str, Node], renaming: Renaming) -> None:
    """Apply a renaming to a directory's entries."""
    for name, node in renaming:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class ByteFile:
    """An open file."""

    __slots__ = ("_disk", "_node", "path")

    def __init__(self, disk: ByteDisk, path: str, node: FileNode) -> None:
        self._disk = disk
        self._node = node
        self.path = path

    @property
    def size(self) -> int:
        """The written size."""
        return len(self._node.visible)

    @size.setter
    def size(self, size: int) -> None:
        raise AssertionError(f"the size of a simulated file is not set, not even to {size}")

    def append(self, buffers: Sequence[Buffer]) -> int:
        data = b"".join(buffers)
        self._disk.change(self.path, self._node, Write(self.size, data))
        return len(data)

    def read(self, position: int, size: int) -> bytes:
        self._disk.maybe_fail("read", self.path)
        return bytes(self._node.visible[position : position + size])

    def truncate(self, size: int) -> None:
        self._disk.change(self.path, self._node, Truncate(size))

    def reserve(self, size: int) -> None:
        """Does nothing: a simulated disk needs no preallocated space."""

    def flush(self) -> None:
        self._disk.flush_file(self.path, self._node)

    def flushed(self, size: int) -> None:
        pass

    def share(self) -> ByteSharedFile:
        return ByteSharedFile(self)

    def descriptor(self) -> int:
        return -1

    def moved_to(self, path: str) -> None:
        self.path = path

    def close(self) -> None:
        pass


class ByteSharedFile:
    """A second handle of a file; closing one does not affect the other."""

    def __init__(self, file: ByteFile) -> None:
        self.flush = file.flush

    def descriptor(self) -> int:
        return -1

    def close(self) -> None:
        pass


class ByteLock:
    """A lock file, held by the one simulated process."""

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)
