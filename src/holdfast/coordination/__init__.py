"""The coordination store: shared cluster state, broker sessions and controller election.

It has versioned nodes, compare-and-set, sessions and watches. A SQLite file keeps it for the
brokers of one machine, ZooKeeper for brokers on several. This package gives the nodes no meaning.
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
