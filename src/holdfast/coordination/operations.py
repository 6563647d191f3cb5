"""What the agreed store holds, what may be asked of it, and how it says no.

A node is bytes at a path, with a version for compare-and-set. Operations are data; a transaction is
a row of them that happens completely or not at all, under one change number.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

LASTING = 0
"""The owner of a node that belongs to no session."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it was when it was read or written."""

    data: bytes
    version: int
    """How often the data was set since the node was created."""
    created: int
    """The change number of its creation. Change numbers rise over the whole store, for ever."""
    modified: int
    """The change number of the last change of its data."""
    owner: int = LASTING
    """The session with which the node vanishes."""

    @property
    def is_ephemeral(self) -> bool:
        return self.owner != LASTING


@dataclass(frozen=True, slots=True)
class Create:
    """A new node. Its parent must exist, and must not be ephemeral."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """New data for a node that has this version; None: whatever version it has."""

    path: str
    data: bytes
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """No such node any more, whoever owns it. It must have no children."""

    path: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """Changes nothing; the transaction fails unless the node has this version, or exists at all."""

    path: str
    version: int | None = None


Operation = Create | Set | Delete | Check
Transaction = Sequence[Operation]


class Reason(enum.Enum):
    """Why an operation does not fit what the store holds."""

    EXISTS = "the node exists already"
    NO_NODE = "there is no such node, or no parent for it"
    VERSION = "the node has another version"
    NOT_EMPTY = "the node has children"
    EPHEMERAL_PARENT = "an ephemeral node cannot have children"


class StoreError(Exception):
    """The store did not do what it was asked."""


class ConflictError(StoreError):
    """The store holds something else than the transaction expects. Nothing was changed."""

    def __init__(self, operation: Operation, reason: Reason) -> None:
        super().__init__(f"{type(operation).__name__} {operation.path}: {reason.value}")
        self.operation = operation
        self.reason = reason


class StoreAwayError(StoreError):
    """The store cannot be reached. It may come back by itself, and the session may still live."""

    def __init__(self, message: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown
        """True: the transaction may have happened. False: it certainly did not."""


class SessionLostError(StoreError):
    """The session has ended, and its nodes are gone. Only `renew` helps."""

    def __init__(self, message: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown
        """True: the transaction may have happened before the session ended."""


class StoreUnusableError(StoreError):
    """The store cannot be used as it is; the message says what, where and what to do."""


Outcome = tuple[Node, ...] | StoreError
"""What became of one transaction: the nodes it created or set, in their order; or why it failed."""


def is_path(path: str) -> bool:
    """Whether a path is absolute and every name in it can be a node's: `/`, `/brokers/ids`."""
    names = path.split("/")[1:]
    return path == "/" or (path.startswith("/") and not any(n in ("", ".", "..") for n in names))


def parent_of(path: str) -> str:
    """The path of the node above; the root is its own."""
    return path.rpartition("/")[0] or "/"


def ancestry(path: str) -> list[str]:
    """The path itself and all above it but the root, the topmost first."""
    names = path.split("/")[1:]
    return ["/" + "/".join(names[: depth + 1]) for depth in range(len(names))]
