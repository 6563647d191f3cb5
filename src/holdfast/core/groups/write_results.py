"""The result of a `Persist`: continues each kind of write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from holdfast.core.groups.group import Group
from holdfast.core.groups.join_group import static_member_settled
from holdfast.core.groups.offsets.offset_writes import OffsetWrites
from holdfast.core.groups.pending_writes import (
    AssignmentWrite,
    OffsetsWrite,
    StaticMemberWrite,
    Turn,
    Write,
)
from holdfast.core.groups.sync_group import assignment_settled
from holdfast.model import ErrorCode


def settle(
    turn: Turn,
    groups: dict[str, Group],
    offset_writes: OffsetWrites,
    token: int,
    error: ErrorCode,
) -> list[Group]:
    """Continue a write, and on success every earlier one; return the groups concerned."""
    writes: Sequence[Write]
    writes = _failed(turn, offset_writes, token, error) if error else turn.journal.committed(token)
    touched: list[Group] = []
    for write in writes:
        group = groups.get(write.group_id)
        match write:
            case OffsetsWrite():
                offset_writes.committed(turn, write)
            case AssignmentWrite():
                if group is not None:
                    assignment_settled(turn, group, write, error)
            case StaticMemberWrite():
                if group is not None:
                    static_member_settled(turn, group, write, error)
            case _:
                assert_never(write)
        if group is not None:
            touched.append(group)
    return touched


def _failed(
    turn: Turn, offset_writes: OffsetWrites, token: int, error: ErrorCode
) -> list[AssignmentWrite | StaticMemberWrite]:
    """The failed write; a write of offsets is handled here."""
    write = turn.journal.get(token)
    rest = offset_writes.failed(turn, write, error) if isinstance(write, OffsetsWrite) else None
    if rest is not None:
        turn.journal.keep(token, rest)
    else:
        turn.journal.forget(token)
    return [] if write is None or isinstance(write, OffsetsWrite) else [write]
