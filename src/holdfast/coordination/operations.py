"""The data model of the coordination store: nodes, operations, outcomes and errors.

A node is bytes at a path, with a version for compare-and-set. Operations are data. A transaction is
a sequence of operations that happens completely or not at all, under one change number.
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
    """How many times the data was set since the node was created."""
    created: int
    """The change number of its creation. Change numbers always rise, over the whole store."""
    modified: int
    """The change number of the last change of its data."""
    owner: int = LASTING
    """The session whose end deletes the node."""

    @property
    def is_ephemeral(self) -> bool:
        return self.owner != LASTING


@dataclass(frozen=True, slots=True)
class Create:
    """Creates a node. Its parent must exist, and must not be ephemeral."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Replaces the data of a node that has this version; None: any version."""

    path: str
    data: bytes
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes a node, whichever session owns it. It must have no children."""

    path: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """Fails the transaction unless the node has this version (None: exists). Changes nothing."""

    path: str
    version: int | None = None


Operation = Create | Set | Delete | Check
Transaction = Sequence[Operation]


class Reason(enum.Enum):
    """Why an operation conflicts with the content of the store."""

    EXISTS = "the node exists already"
    NO_NODE = "there is no such node, or no parent for it"
    VERSION = "the node has another version"
    NOT_EMPTY = "the node has children"
    EPHEMERAL_PARENT = "an ephemeral node cannot have children"


class StoreError(Exception):
    """The store did not execute a request."""


class ConflictError(StoreError):
    """The content of the store is not what the transaction expects. Nothing was changed."""

    def __init__(self, operation: Operation, reason: Reason) -> None:
        super().__init__(f"{type(operation).__name__} {operation.path}: {reason.value}")
        self.operation = operation
        self.reason = reason


class _NoAnswerError(StoreError):
    def __init__(self, message: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown
        """True: the transaction may have happened. False: it certainly did not."""


class StoreAwayError(_NoAnswerError):
    """The store cannot be reached. It may come back, and the session may still exist."""


class SessionLostError(_NoAnswerError):
    """The session has ended, and its nodes are gone. Call `renew` for a new one."""


class StoreUnusableError(StoreError):
    """The store cannot be used as it is. The message says why, and what to do."""


Outcome = tuple[Node, ...] | StoreError
"""The result of one transaction: the nodes it created or set, in order, or why it failed."""


def is_path(path: str) -> bool:
    """Whether a path is absolute and has only valid node names: `/`, `/brokers/ids`."""
    names = path.split("/")[1:]
    return path == "/" or (path.startswith("/") and not any(n in ("", ".", "..") for n in names))


def parent_of(path: str) -> str:
    """The path of the parent; the root is its own parent."""
    return path.rpartition("/")[0] or "/"


def ancestry(path: str) -> list[str]:
    """The path and all its ancestors except the root, topmost first."""
    names = path.split("/")[1:]
    return ["/" + "/".join(names[: depth + 1]) for depth in range(len(names))]
