"""One session with ZooKeeper: a kazoo client that stops when its session is lost.

kazoo itself opens a new session when the old one has expired, and sends the requests queued for the
old one. A broker would then act in a session that it has not registered in, so this client stops
for good.

ZooKeeper's answer to a multi request has the change number of a created node only in its header.
kazoo's own multi request discards the header; ours keeps the number.

kazoo's threads run the callbacks passed in.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.hosts import collect_hosts
from kazoo.interfaces import IAsyncResult
from kazoo.protocol import serialization
from kazoo.protocol.states import EventType, WatchedEvent, ZnodeStat
from kazoo.security import OPEN_ACL_UNSAFE

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
)
from holdfast.coordination.store import SessionState

STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.AWAY,
    KazooState.LOST: SessionState.LOST,
}

REASONS = {
    NodeExistsError: Reason.EXISTS,
    NoNodeError: Reason.NO_NODE,
    BadVersionError: Reason.VERSION,
    NotEmptyError: Reason.NOT_EMPTY,
    NoChildrenForEphemeralsError: Reason.EPHEMERAL_PARENT,
}

EPHEMERAL_FLAG = 1
ANY_VERSION = -1
LONGEST_RETRY_DELAY_S = 1.0
UNREACHABLE_HOST = "127.0.0.1:1"
"""A port that nothing listens on: connecting fails immediately."""

logger = logging.getLogger(__name__)


class Multi(serialization.Transaction):  # type: ignore[misc] # kazoo is untyped
    """A multi request; kazoo sends it and reads its answer with `deserialize`."""

    __slots__ = ()

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[object]:
        """The change number, then one result per operation: a Stat, True, or an error.

        A list, because kazoo iterates over it in search of paths.
        """
        _, change, _ = serialization.reply_header_struct.unpack_from(data, 0)
        results: list[object] = [change]
        header, offset = serialization.MultiHeader.deserialize(data, offset)
        while not header.done:  # as often as there are operations
            match header.type:
                case serialization.Create.type:
                    _, offset = serialization.read_string(data, offset)
                    results.append(True)
                case serialization.SetData.type:
                    stat = serialization.stat_struct.unpack_from(data, offset)
                    results.append(ZnodeStat._make(stat))
                    offset += serialization.stat_struct.size
                case -1:
                    [code] = serialization.int_struct.unpack_from(data, offset)
                    results.append(serialization.EXCEPTIONS[code]())
                    offset += serialization.int_struct.size
                case _:
                    results.append(True)
            header, offset = serialization.MultiHeader.deserialize(data, offset)
        return results


class ZooKeeperSession:
    """Sends requests in the order of the calls; ZooKeeper answers in that order."""

    def __init__(
        self,
        hosts: str,
        session_timeout_ms: int,
        on_state: Callable[[SessionState], None],
        on_change: Callable[[str], None],
    ) -> None:
        """Raises ValueError if the hosts are malformed."""
        self._hosts = hosts
        self._on_state = on_state
        self._on_change = on_change
        self._watchers: dict[str, Callable[[WatchedEvent], None]] = {}
        self._client = KazooClient(
            hosts=hosts,
            timeout=session_timeout_ms / 1000,
            connection_retry={"max_tries": -1, "max_delay": LONGEST_RETRY_DELAY_S},
            logger=logger,
        )
        self.id = 0

    @property
    def state(self) -> SessionState:
        return STATES[self._client.state]

    def start(self, timeout_s: float) -> None:
        """Open the session, and create the chroot that the hosts name. Blocks."""
        try:
            if not self._client.start_async().wait(timeout_s):
                raise KazooTimeoutError
            self._client.ensure_path("/")
            self.id = self._client.client_id[0]
        except (KazooException, KazooTimeoutError, TypeError) as error:
            self.finish()
            message = f"ZooKeeper at {self._hosts} does not answer; check that it runs there"
            raise StoreAwayError(message) from error
        self._client.add_listener(self._state_changed)

    def finish(self) -> None:
        """End the session, if it still exists, and the client. Blocks."""
        try:
            if self._client._stopped.is_set():
                self._client._safe_close()
            else:
                self._client.stop()
            self._client.close()
        except KazooException as error:
            logger.warning("ZooKeeper client not closed: %r", error)

    def expire(self) -> None:
        """Close our session from a second client that takes it over. Blocks."""
        thief = KazooClient(hosts=self._hosts, client_id=self._client.client_id)
        thief.start()
        thief.stop()
        thief.close()

    def disconnect(self) -> None:
        """Close the connection, and let every new attempt fail."""
        _, _, folder = self._hosts.partition("/")
        self._client.set_hosts(f"{UNREACHABLE_HOST}/{folder}" if folder else UNREACHABLE_HOST)
        connection = self._client._connection._socket
        if connection is not None:
            with contextlib.suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)

    def reconnect(self) -> None:
        """Let the next attempt to connect succeed."""
        self._client.set_hosts(self._hosts)

    def get(self, path: str, done: Callable[[Node | StoreError | None], None]) -> None:
        self._answer(self._client.get_async(path), done, lambda found: _node(*found), None)

    def catch_up(self, done: Callable[[StoreError | None], None]) -> None:
        """Make our server catch up with the leader of the ensemble before our next read."""
        self._answer(self._client.sync_async("/"), done, lambda _: None)

    def children(self, path: str, done: Callable[[list[str] | StoreError], None]) -> None:
        self._answer(self._client.get_children_async(path), done, sorted, [])

    def commit(self, transaction: Transaction, done: Callable[[Outcome], None]) -> None:
        result = self._client.handler.async_result()
        requests = [self._request(operation) for operation in transaction]
        self._client._call(Multi(requests), result)
        self._answer(result, done, lambda answer: self._outcome(transaction, *answer))

    def _answer(
        self,
        result: IAsyncResult,
        done: Callable[[Any], None],
        read: Callable[[Any], object],
        missing: object = ...,
    ) -> None:
        """Call `done` with what `read` makes of the result, with `missing` if there is no such
        node, or with an error.
        """

        def finish(result: IAsyncResult) -> None:
            match result.exception:
                case None:
                    done(read(result.value))
                case NoNodeError() if missing is not ...:
                    done(missing)
                case error:
                    done(self._translated(error))

        result.rawlink(finish)

    def arm(self, path: str) -> None:
        """Call back, once, after the next change. A read after this call misses no change."""
        watcher = self._watchers.get(path)
        if watcher is None:
            # The same callable each time: kazoo and ZooKeeper then take it for the same watch.
            watcher = self._watchers[path] = lambda event: self._fired(path, event)
        self._client.exists_async(path, watch=watcher)
        self._client.get_children_async(path, watch=watcher)

    def _fired(self, path: str, event: WatchedEvent) -> None:
        if event.type != EventType.NONE:  # NONE only reports a lost connection
            self._on_change(path)

    def _state_changed(self, state: str) -> None:
        if state == KazooState.LOST:
            self._client._stopped.set()  # otherwise kazoo opens a new session
        self._on_state(STATES[state])

    def _request(self, operation: Operation) -> Any:
        path = self._client.chroot + operation.path
        if isinstance(operation, Create):
            flags = EPHEMERAL_FLAG if operation.ephemeral else 0
            return serialization.Create(path, operation.data, OPEN_ACL_UNSAFE, flags)
        version = ANY_VERSION if operation.version is None else operation.version
        match operation:
            case Set():
                return serialization.SetData(path, operation.data, version)
            case Delete():
                return serialization.Delete(path, version)
            case Check():
                return serialization.CheckVersion(path, version)

    def _outcome(self, transaction: Transaction, change: int, *results: object) -> Outcome:
        nodes = []
        for operation, result in zip(transaction, results, strict=True):
            match operation, result:
                case _, RolledBackError() | RuntimeInconsistency():
                    pass  # undone because of another operation, which has the reason
                case _, KazooException():
                    reason = REASONS.get(type(result))
                    if reason is None:
                        return self._translated(result)
                    return ConflictError(operation, reason)
                case Create(), _:
                    owner = self.id if operation.ephemeral else LASTING
                    nodes.append(Node(operation.data, 0, change, change, owner))
                case Set(), ZnodeStat():
                    nodes.append(_node(operation.data, result))
                case _:
                    pass  # a successful deletion or check
        return tuple(nodes)

    def _translated(self, error: Exception) -> StoreError:
        where = f"ZooKeeper at {self._hosts}"
        match error:
            case ConnectionLoss():
                message = f"the connection to {where} was lost"
                return StoreAwayError(message, outcome_unknown=True)
            case SessionExpiredError() | ConnectionClosedError():
                message = f"session {self.id:#x} with {where} has ended"
                return SessionLostError(message, outcome_unknown=True)
            case _:
                advice = "check its settings and the rights of its nodes"
                return StoreUnusableError(f"{where} refuses: {error!r}; {advice}")


def _node(data: bytes, stat: ZnodeStat) -> Node:
    return Node(data, stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)


def check_hosts(hosts: str) -> None:
    """Raise ValueError if this is not host:port,host:port/folder."""
    collect_hosts(hosts)
