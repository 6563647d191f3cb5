"""A member of a group, from its first JoinGroup until it leaves, is fenced or expires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from holdfast.core.groups.requests import Join, MemberProtocol
from holdfast.model import MemberMetadata


class GroupMember:
    """One member. `join_waiter` and `sync_waiter` hold its waiting requests."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_being_stored",
        "is_new",
        "join_waiter",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_deadline_ms",
        "session_timeout_ms",
        "sync_waiter",
    )

    assignment: bytes
    """Its assignment in this generation; empty until that is stored."""
    is_being_stored: bool
    """A static member whose new id is on its way into the log while the group is Stable."""
    is_new: bool
    """It waits for its first JoinGroup answer."""
    session_deadline_ms: int | None
    """None while its waiting request counts as a heartbeat."""

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = 0
        self.rebalance_timeout_ms = 0
        self.protocols: tuple[MemberProtocol, ...] = ()
        self.assignment = b""
        self.is_new = False
        self.is_being_stored = False
        self.join_waiter: object = None
        self.sync_waiter: object = None
        self.session_deadline_ms = None

    @classmethod
    def joining(cls, request: Join, member_id: str) -> Self:
        """A new member."""
        member = cls(member_id, request.group_instance_id, request.client_id, request.client_host)
        member.is_new = True
        member.update(request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
        return member

    @classmethod
    def stored(cls, metadata: MemberMetadata, protocol_name: str) -> Self:
        """A member as an earlier coordinator stored it, with the chosen protocol only."""
        member = cls(
            metadata.member_id,
            metadata.group_instance_id,
            metadata.client_id,
            metadata.client_host,
        )
        protocols = (MemberProtocol(protocol_name, metadata.subscription),)
        member.update(protocols, metadata.rebalance_timeout_ms, metadata.session_timeout_ms)
        member.assignment = metadata.assignment
        return member

    def update(
        self,
        protocols: Sequence[MemberProtocol],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Take over the values of the member's newest JoinGroup."""
        self.protocols = distinct(protocols)
        self.session_timeout_ms = session_timeout_ms
        # Version 0 of JoinGroup, and of the stored value, has no rebalance timeout.
        given = rebalance_timeout_ms >= 0
        self.rebalance_timeout_ms = rebalance_timeout_ms if given else session_timeout_ms

    def renamed(self, member_id: str) -> GroupMember:
        """The same static member under another id, without waiting requests."""
        twin = GroupMember(member_id, self.group_instance_id, self.client_id, self.client_host)
        twin.update(self.protocols, self.rebalance_timeout_ms, self.session_timeout_ms)
        twin.assignment = self.assignment
        return twin

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its metadata for this protocol."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise AssertionError(f"{self.member_id} does not know {protocol_name}")

    def knows(self, protocol_name: str) -> bool:
        """Whether the member supports this protocol."""
        return any(protocol.name == protocol_name for protocol in self.protocols)

    def vote(self, candidates: Sequence[str]) -> str:
        """Its preferred candidate. Every member supports all candidates."""
        return next(each.name for each in self.protocols if each.name in candidates)

    @property
    def waits(self) -> bool:
        """Whether one of its requests waits, which counts as a heartbeat."""
        return self.join_waiter is not None or self.sync_waiter is not None

    def seen(self, now_ms: int) -> None:
        """The client sent a request: its session timeout starts again."""
        self.session_deadline_ms = now_ms + self.session_timeout_ms

    def to_metadata(self, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
        """As it is stored."""
        return MemberMetadata(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol_name),
            assignment,
        )


def distinct(protocols: Sequence[MemberProtocol]) -> tuple[MemberProtocol, ...]:
    """A name given twice counts once."""
    by_name: dict[str, MemberProtocol] = {}
    for protocol in protocols:
        by_name.setdefault(protocol.name, protocol)
    return tuple(by_name.values())
