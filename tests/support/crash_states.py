"""Enumerates what a crash may leave on a simulated disk.

A crash of the process leaves everything that was written, and a part of the write in progress. A
power failure leaves what `simulation.disk.power_loss` says; here all of it is enumerated.

If there are no more combinations than the bound, all are returned. Otherwise: nothing kept, all
kept, and samples of two kinds, drawn from a seed: one file or directory differs from these two, and
any combination.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from random import Random
from typing import NamedTuple

from holdfast.simulation.disk.byte_disk import (
    ByteDisk,
    DirectoryNode,
    FileChange,
    FileNode,
    Node,
    Renaming,
    Step,
    Write,
    apply,
    rename_in,
)
from holdfast.simulation.disk.power_loss import Outcome, all_nodes, directory_after

MOST_SUBSETS = 4
"""Up to so many changes of names, all selections are enumerated."""


class Bound(NamedTuple):
    """How far to enumerate."""

    states: int = 64
    """States per crash point."""
    tear_points: int = 4
    """Positions at which a write is torn; 0: every byte."""
    seed: int = 0


class CrashState(NamedTuple):
    """A disk after a crash."""

    what: str
    disk: ByteDisk


def crash_states(disk: ByteDisk, step: Step | None, bound: Bound) -> Iterator[CrashState]:
    """All disks that a crash just before or during a step may leave."""
    for number, content in enumerate(_torn(step, bound)):
        yield CrashState(f"killed, {number}", _copy(disk, step, content))
    seen: set[object] = set()
    for number, chosen in enumerate(_choices(disk, step, bound)):
        root = directory_after(disk.root, chosen)
        shape = _shape(root)
        if shape not in seen:
            seen.add(shape)
            yield CrashState(f"power lost, {number}", ByteDisk(root))


def _torn(step: Step | None, bound: Bound) -> list[bytes | None]:
    """A file's content when the process is killed inside a write; None: unchanged."""
    found: list[bytes | None] = [None]
    if step is not None and step.file is not None and isinstance(step.change, Write):
        for kept_bytes in _tear_points(len(step.change.data), bound)[1:]:
            content = bytearray(step.file.visible)
            apply(content, Write(step.change.position, step.change.data[:kept_bytes]))
            found.append(bytes(content))
    return found


def _tear_points(size: int, bound: Bound) -> list[int]:
    if bound.tear_points == 0 or size <= bound.tear_points:
        return list(range(size + 1))
    spread = {size * part // bound.tear_points for part in range(bound.tear_points + 1)}
    return sorted({*spread, 1, size - 1})


def _copy(disk: ByteDisk, step: Step | None, content: bytes | None) -> ByteDisk:
    """The disk as readers see it: a process crash keeps the page cache."""

    def copied(node: Node) -> Node:
        if isinstance(node, DirectoryNode):
            return DirectoryNode({name: copied(child) for name, child in node.visible.items()})
        if content is not None and step is not None and node is step.file:
            return _unflushed(node, content)
        return _unflushed(node, bytes(node.visible))

    root = copied(disk.root)
    assert isinstance(root, DirectoryNode)
    return ByteDisk(root)


def _unflushed(node: FileNode, content: bytes) -> FileNode:
    """Keep unflushed changes unflushed: a later power failure may still remove them."""
    copy = FileNode(node.flushed)
    if content != node.flushed:
        copy.visible = bytearray(content)
        copy.pending = [*node.pending]
        extra = content[len(node.visible) :]
        if extra:
            copy.pending.append(Write(len(node.visible), extra))
    return copy


def _choices(disk: ByteDisk, step: Step | None, bound: Bound) -> Iterator[dict[int, Outcome]]:
    """Combinations of outcomes of all files and directories."""
    options: dict[int, list[Outcome]] = {}
    for node in all_nodes(disk.root):
        if isinstance(node, FileNode):
            pending = list(node.pending)
            if step is not None and step.file is node and step.change is not None:
                pending.append(step.change)
            if pending:
                options[id(node)] = list(_file_outcomes(node.flushed, pending, bound))
        elif node.pending:
            options[id(node)] = list(_directory_outcomes(node.flushed, node.pending))
    keys, lists = list(options), list(options.values())
    total = 1
    for one in lists:
        total *= len(one)
    if total <= bound.states:
        for combination in itertools.product(*lists):
            yield dict(zip(keys, combination, strict=True))
        return
    yield from _some(keys, lists, bound)


def _some(
    keys: list[int], lists: list[list[Outcome]], bound: Bound
) -> Iterator[dict[int, Outcome]]:
    least = {key: one[0] for key, one in zip(keys, lists, strict=True)}
    most = {key: one[-1] for key, one in zip(keys, lists, strict=True)}
    yield least
    yield most
    rng = Random(bound.seed)
    alone = [
        {**around, key: outcome}
        for around in (least, most)
        for key, one in zip(keys, lists, strict=True)
        for outcome in one
    ]
    share = max(1, bound.states // 2)
    yield from alone if len(alone) <= share else rng.sample(alone, share)
    for _ in range(share):
        yield {key: rng.choice(one) for key, one in zip(keys, lists, strict=True)}


def _file_outcomes(flushed: bytes, pending: list[FileChange], bound: Bound) -> Iterable[bytes]:
    """Contents from "nothing kept" to "all kept", each once."""
    content = bytearray(flushed)
    found: dict[bytes, None] = {bytes(content): None}
    for change in pending:
        if isinstance(change, Write):
            for kept_bytes in _tear_points(len(change.data), bound):
                torn = bytearray(content)
                apply(torn, Write(change.position, change.data[:kept_bytes]))
                found[bytes(torn)] = None
            hole = bytearray(content)
            apply(hole, Write(change.position, bytes(len(change.data))))
            found[bytes(hole)] = None
        apply(content, change)
        found.pop(bytes(content), None)
        found[bytes(content)] = None
    return found


def _directory_outcomes(
    flushed: dict[str, Node], pending: list[Renaming]
) -> Iterator[dict[str, Node]]:
    """From "no change kept" to "all kept"."""
    count = len(pending)
    if count <= MOST_SUBSETS:
        selections = [
            [index for index in range(count) if number >> index & 1] for number in range(1 << count)
        ]
    else:
        prefixes = [list(range(index)) for index in range(count)]
        omissions = [[at for at in range(count) if at != index] for index in range(count)]
        selections = [*prefixes, *omissions, list(range(count))]
    for selection in selections:
        entries = dict(flushed)
        for index in selection:
            rename_in(entries, pending[index])
        yield entries


def _shape(node: Node) -> object:
    if isinstance(node, FileNode):
        return node.flushed
    return tuple(sorted((name, _shape(child)) for name, child in node.flushed.items()))
