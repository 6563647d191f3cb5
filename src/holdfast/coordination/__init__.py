"""The agreed store: what all brokers see alike, and by which they decide who lives and who rules.

Versioned nodes, compare-and-set, sessions and watches; kept in a file on one machine, or by
ZooKeeper. What the nodes mean is not known here.
"""

from holdfast.coordination import paths
from holdfast.coordination.availability import check_embedded, check_zookeeper
from holdfast.coordination.embedded.embedded_store import EmbeddedStore
from holdfast.coordination.operations import (
    LASTING,
    Check,
    ConflictError,
    Create,
    Delete,
    Node,
    Operation,
    Outcome,
    Reason,
    SessionLostError,
    Set,
    StoreAwayError,
    StoreError,
    StoreUnusableError,
    Transaction,
    parent_of,
)
from holdfast.coordination.store import SessionState, Store, Watch
from holdfast.coordination.zookeeper.zookeeper_store import ZooKeeperStore

__all__ = [
    "LASTING",
    "Check",
    "ConflictError",
    "Create",
    "Delete",
    "EmbeddedStore",
    "Node",
    "Operation",
    "Outcome",
    "Reason",
    "SessionLostError",
    "SessionState",
    "Set",
    "Store",
    "StoreAwayError",
    "StoreError",
    "StoreUnusableError",
    "Transaction",
    "Watch",
    "ZooKeeperStore",
    "check_embedded",
    "check_zookeeper",
    "parent_of",
    "paths",
]
