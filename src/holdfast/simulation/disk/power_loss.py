"""What a power failure leaves on a simulated disk.

What was flushed stays, and any part of the rest: of each file the first few changes and a part of
the next one, torn at any byte or with zeros in place of its bytes; of each directory any selection
of the changes to its names. Files and directories are independent of each other.
"""

from __future__ import annotations

from random import Random

from holdfast.simulation.disk.byte_disk import (
    ByteDisk,
    DirectoryNode,
    FileNode,
    Node,
    Write,
    apply,
    rename_in,
)

Outcome = bytes | dict[str, Node]
"""The content of one file, or the entries of one directory, after a crash."""


def drawn_power_loss(disk: ByteDisk, rng: Random) -> ByteDisk:
    """A random disk of those that a power failure may leave."""
    chosen: dict[int, Outcome] = {}
    for node in all_nodes(disk.root):
        if not node.pending:
            continue
        keeps = rng.randrange(len(node.pending) + 1)
        if isinstance(node, FileNode):
            chosen[id(node)] = _drawn_content(node, keeps, rng)
        else:
            entries = dict(node.flushed)
            is_prefix = rng.random() < 0.5
            for index, renaming in enumerate(node.pending):
                if index < keeps if is_prefix else rng.random() < 0.5:
                    rename_in(entries, renaming)
            chosen[id(node)] = entries
    return ByteDisk(directory_after(disk.root, chosen))


def flushed_only(disk: ByteDisk) -> ByteDisk:
    """The disk if a power failure keeps nothing that was not flushed."""
    return ByteDisk(directory_after(disk.root, {}))


def _drawn_content(node: FileNode, keeps: int, rng: Random) -> bytes:
    """The first `keeps` changes, and a part of the next one or zeros in its place."""
    content = bytearray(node.flushed)
    for change in node.pending[:keeps]:
        apply(content, change)
    if keeps < len(node.pending) and isinstance(change := node.pending[keeps], Write):
        data = change.data[: rng.randrange(len(change.data) + 1)]
        if rng.random() < 0.2:
            data = bytes(len(change.data))
        apply(content, Write(change.position, data))
    return bytes(content)


def all_nodes(root: DirectoryNode) -> list[Node]:
    """All nodes that have a name, or may have one after a crash."""
    found: dict[int, Node] = {}
    waiting: list[Node] = [root]
    while waiting:  # Visits each node one time.
        node = waiting.pop()
        if id(node) in found:
            continue
        found[id(node)] = node
        if isinstance(node, DirectoryNode):
            waiting += [*node.visible.values(), *node.flushed.values()]
            waiting += [it for names in node.pending for _, it in names if it is not None]
    return list(found.values())


def directory_after(node: Node, chosen: dict[int, Outcome]) -> DirectoryNode:
    """A directory with the outcomes chosen for its nodes, by id; of the others what was flushed."""
    built = _built(node, chosen)
    assert isinstance(built, DirectoryNode)
    return built


def _built(node: Node, chosen: dict[int, Outcome]) -> Node:
    outcome = chosen.get(id(node))
    if isinstance(node, FileNode):
        return FileNode(outcome if isinstance(outcome, bytes) else node.flushed)
    entries = outcome if isinstance(outcome, dict) else node.flushed
    return DirectoryNode({name: _built(child, chosen) for name, child in entries.items()})
