"""The simulated coordination store's nodes: a tree in memory that never fails."""

from __future__ import annotations

from dataclasses import replace

from holdfast.coordination import (
    LASTING,
    Check,
    ConflictError,
    Create,
    Delete,
    Node,
    Operation,
    Outcome,
    Reason,
    Set,
    Transaction,
    parent_of,
)


class MemoryTree:
    """Nodes by path, and the paths changed since the last `take_changed`."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(b"", 0, 0, 0)}
        self._children: dict[str, dict[str, None]] = {}
        self._undo: list[tuple[str, Node | None]] = []
        self._changed: dict[str, None] = {}
        self.last_change = 0

    def next_change(self) -> int:
        self.last_change += 1
        return self.last_change

    def children(self, path: str) -> list[str]:
        return sorted(self._children.get(path, ()))

    def take_changed(self) -> list[str]:
        """The changed paths whose watches are due; each is returned once."""
        changed, self._changed = self._changed, {}
        return list(changed)

    def remove_owned(self, session: int) -> None:
        """Remove the ephemeral nodes of a session that has ended."""
        self.next_change()
        for path in [path for path, node in self.nodes.items() if node.owner == session]:
            self._put(path, None)

    def commit(self, transaction: Transaction, session: int) -> Outcome:
        """Apply a whole transaction, or nothing and return the conflict."""
        change = self.next_change()
        self._undo = []
        before = dict(self._changed)
        try:
            written = [self._apply(operation, change, session) for operation in transaction]
        except ConflictError as conflict:
            for path, node in reversed(tuple(self._undo)):
                self._put(path, node)
            self._changed = before
            self.last_change -= 1
            return conflict
        return tuple(node for node in written if node is not None)

    def _apply(self, operation: Operation, change: int, session: int) -> Node | None:
        if isinstance(operation, Create):
            return self._create(operation, change, session)
        node = self.nodes.get(operation.path)
        if node is None:
            raise ConflictError(operation, Reason.NO_NODE)
        if operation.version not in (None, node.version):
            raise ConflictError(operation, Reason.VERSION)
        match operation:
            case Set():
                version = node.version + 1
                node = replace(node, data=operation.data, version=version, modified=change)
                return self._put(operation.path, node)
            case Delete():
                if self.children(operation.path):
                    raise ConflictError(operation, Reason.NOT_EMPTY)
                return self._put(operation.path, None)
            case Check():
                return None

    def _create(self, create: Create, change: int, session: int) -> Node | None:
        parent = self.nodes.get(parent_of(create.path))
        if parent is None:
            raise ConflictError(create, Reason.NO_NODE)
        if parent.is_ephemeral:
            raise ConflictError(create, Reason.EPHEMERAL_PARENT)
        if create.path in self.nodes:
            raise ConflictError(create, Reason.EXISTS)
        owner = session if create.ephemeral else LASTING
        return self._put(create.path, Node(create.data, 0, change, change, owner))

    def _put(self, path: str, node: Node | None) -> Node | None:
        old = self.nodes.get(path)
        self._undo.append((path, old))
        self._changed[path] = None
        if (old is None) != (node is None):
            self._changed[parent_of(path)] = None
        siblings = self._children.setdefault(parent_of(path), {})
        name = path.rpartition("/")[2]
        if node is None:
            self.nodes.pop(path, None)
            siblings.pop(name, None)
        else:
            self.nodes[path] = node
            siblings[name] = None
        return node
