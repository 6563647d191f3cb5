"""Checks that a coordination store can be used, without opening a session."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.coordination.embedded.schema import cannot_open, connect
from holdfast.coordination.operations import StoreUnusableError

BUSY_MS = 5_000


def check_embedded(file: Path) -> None:
    """Raise StoreUnusableError if a broker could not open or create this file."""
    if file.exists():
        connect(file, BUSY_MS).close()
    elif not os.access(file.parent, os.W_OK | os.X_OK):
        raise cannot_open(file, "unable to open database file")


def check_zookeeper(hosts: str) -> None:
    """Raise StoreUnusableError if this is not an address of ZooKeeper servers."""
    try:
        from holdfast.coordination.zookeeper.kazoo_session import check_hosts
    except ModuleNotFoundError as missing:
        message = "the ZooKeeper store needs kazoo; install it: pip install holdfast[zookeeper]"
        raise StoreUnusableError(message) from missing
    try:
        check_hosts(hosts)
    except ValueError as error:
        message = (
            f"{hosts!r} is not a ZooKeeper address ({error}); write host:port,host:port/folder"
        )
        raise StoreUnusableError(message) from error
