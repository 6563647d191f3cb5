"""The names of files and directories, and how to return to the flushed state.

Pure: the caller reports changes. For every file it keeps how much a flush has covered, and for
every directory the changes of names since its last flush, oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Change = Sequence[str | int]
"""A verb, a path, and the verb's argument: another path, or a size."""


@dataclass(slots=True)
class FileName:
    """A file, independent of its name."""

    number: int
    flushed: int = 0
    """Bytes from its beginning that survive a power failure."""


@dataclass(slots=True)
class Undo:
    """One change of a directory's names."""

    kind: str
    """create, rename or remove."""
    name: str
    removed: Node | None = None
    """The file of a removed name."""
    new_name: str = ""
    replaced: FileName | None = None
    """The file that a rename replaced."""

    def take_back(self, directory: Directory) -> None:
        """Restore the names before the change."""
        names = directory.names
        if self.kind == "create":
            names.pop(self.name, None)
        elif self.kind == "rename":
            # Changes are undone newest first, so the new name is that of the moved file.
            moved = names.pop(self.new_name, None)
            if moved is not None:
                names[self.name] = moved
            if self.replaced is not None:
                names[self.new_name] = self.replaced
        elif self.removed is not None:
            names[self.name] = self.removed

    def kept(self) -> Iterator[int]:
        """The numbers of files that have lost their name by this change."""
        if self.replaced is not None:
            yield self.replaced.number
        if isinstance(self.removed, FileName):
            yield self.removed.number
        elif self.removed is not None:
            for undo in self.removed.pending:
                yield from undo.kept()


@dataclass(slots=True)
class Directory:
    """Names, and their changes since the last flush."""

    names: dict[str, Node] = field(default_factory=dict)
    pending: list[Undo] = field(default_factory=list)


Node = FileName | Directory


class NameTree:
    """Everything below one root."""

    def __init__(self) -> None:
        self.root = Directory()
        self._next_number = 0
        self._strike_out: Callable[[], None] | None = None

    def new_file(self, flushed: int = 0) -> FileName:
        """A file with a number that no other has."""
        self._next_number += 1
        return FileName(self._next_number, flushed)

    def find(self, path: str) -> Node | None:
        """The file or directory at a path."""
        node: Node = self.root
        for part in path.split("/") if path else ():
            if not isinstance(node, Directory) or part not in node.names:
                return None
            node = node.names[part]
        return node

    def apply(self, change: Change) -> list[int]:
        """Apply a change; returns the numbers of files that need not be kept any more."""
        verb, path = str(change[0]), str(change[1])
        self._strike_out = None
        match verb:
            case "flush" | "truncate":
                self._sized(path, int(change[2]), is_flush=verb == "flush")
            case "flush_directory":
                return self._flushed_directory(path)
            case "create":
                self._add(path, Undo("create", _last(path)), self.new_file())
            case "create_directory":
                self._add(path, Undo("create", _last(path)), Directory())
            case "rename":
                self._rename(path, str(change[2]))
            case "remove":
                node = self.find(path)
                if node is not None:
                    self._add(path, Undo("remove", _last(path), node), node)
            case _:
                raise AssertionError(f"unknown change {verb}")
        return []

    def strike_out(self) -> None:
        """Remove the last change, which was not made."""
        if self._strike_out is not None:
            self._strike_out()
            self._strike_out = None

    def _sized(self, path: str, size: int, *, is_flush: bool) -> None:
        node = self.find(path)
        if isinstance(node, FileName):
            file, was = node, node.flushed
            node.flushed = size if is_flush else min(node.flushed, size)
            self._strike_out = lambda: setattr(file, "flushed", was)

    def _flushed_directory(self, path: str) -> list[int]:
        node = self.find(path)
        if not isinstance(node, Directory):
            return []
        pending, node.pending = node.pending, []
        return [number for undo in pending for number in undo.kept()]

    def _rename(self, old: str, new: str) -> None:
        node, replaced = self.find(old), self.find(new)
        if node is not None:
            file = replaced if isinstance(replaced, FileName) else None
            self._add(old, Undo("rename", _last(old), None, _last(new), file), node)

    def _add(self, path: str, undo: Undo, node: Node) -> None:
        holder = self.find(path.rpartition("/")[0])
        assert isinstance(holder, Directory), path
        directory = holder
        assert undo.kind != "create" or undo.name not in directory.names, path
        if undo.kind != "create":
            del directory.names[undo.name]
        if undo.kind != "remove":
            directory.names[undo.new_name or undo.name] = node
        directory.pending.append(undo)

        def strike_out() -> None:
            directory.pending.pop().take_back(directory)

        self._strike_out = strike_out

    def files(self) -> Iterator[tuple[str, FileName]]:
        """Every file that has a name, by its path."""
        yield from _files("", self.root)

    def to_json(self) -> dict[str, Any]:
        return {"next": self._next_number, "root": _node_to_json(self.root)}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> NameTree:
        tree = cls()
        tree._next_number = state["next"]
        root = _node_from_json(state["root"])
        assert isinstance(root, Directory)
        tree.root = root
        return tree


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _files(prefix: str, directory: Directory) -> Iterator[tuple[str, FileName]]:
    for name, node in directory.names.items():
        path = f"{prefix}{name}"
        if isinstance(node, FileName):
            yield path, node
        else:
            yield from _files(f"{path}/", node)


def _node_to_json(node: Node) -> Any:
    if isinstance(node, FileName):
        return [node.number, node.flushed]
    return {
        "names": {name: _node_to_json(child) for name, child in node.names.items()},
        "pending": [_undo_to_json(undo) for undo in node.pending],
    }


def _undo_to_json(undo: Undo) -> list[Any]:
    removed = None if undo.removed is None else _node_to_json(undo.removed)
    replaced = None if undo.replaced is None else _node_to_json(undo.replaced)
    return [undo.kind, undo.name, removed, undo.new_name, replaced]


def _node_from_json(state: Any) -> Node:
    if isinstance(state, list):
        return FileName(*state)
    return Directory(
        {name: _node_from_json(child) for name, child in state["names"].items()},
        [_undo_from_json(undo) for undo in state["pending"]],
    )


def _undo_from_json(state: list[Any]) -> Undo:
    kind, name, removed, new_name, replaced = state
    node = None if removed is None else _node_from_json(removed)
    file = None if replaced is None else FileName(*replaced)
    return Undo(kind, name, node, new_name, file)
