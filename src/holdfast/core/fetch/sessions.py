"""All fetch sessions of a broker: which one a request continues, opens or closes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic

from holdfast.core.fetch.session import NO_SESSION, FetchSession, P
from holdfast.model import BrokerId, ErrorCode

FINAL_EPOCH: Final = -1
FIRST_EPOCH: Final = 0
LARGEST_SESSION_ID: Final = 2**31 - 1
MOST_FOLLOWERS: Final = 1_000
"""Limit for sessions of followers: any client can claim to be one."""


class FetchSessions(Generic[P]):
    """Evicts the least recently used session when there are too many."""

    def __init__(self, limit: int, random_id: Callable[[], int]) -> None:
        self._limit = limit
        """max.incremental.fetch.session.cache.slots; followers do not count."""
        self._random_id = random_id
        """From 1 to `LARGEST_SESSION_ID` - 1."""
        self._sessions: dict[int, FetchSession[P]] = {}

    def find(
        self, identity: int, epoch: int, follower: BrokerId | None
    ) -> tuple[FetchSession[P] | None, ErrorCode]:
        """The session of a request, a new one, or an error."""
        if epoch in (FINAL_EPOCH, FIRST_EPOCH):
            if identity != NO_SESSION:
                self._close(identity)
            if epoch == FINAL_EPOCH or self._limit <= 0:
                return FetchSession(NO_SESSION, follower), ErrorCode.NONE
            return self._open(follower), ErrorCode.NONE
        session = self._sessions.get(identity)
        if session is None or session.follower != follower:
            return None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if epoch != session.epoch:
            return None, ErrorCode.INVALID_FETCH_SESSION_EPOCH
        session.epoch = 1 if epoch == LARGEST_SESSION_ID else epoch + 1
        # The most recently used is at the end.
        self._sessions[identity] = self._sessions.pop(identity)
        return session, ErrorCode.NONE

    def _open(self, follower: BrokerId | None) -> FetchSession[P]:
        peers = [
            one for one in self._sessions.values() if (one.follower is None) == (follower is None)
        ]
        limit = self._limit if follower is None else MOST_FOLLOWERS
        # A follower has one session; a new one means that it lost the other.
        own = [one for one in peers if follower is not None and one.follower == follower]
        if own or len(peers) >= limit:
            self._close((own or peers)[0].id)
        identity = NO_SESSION
        while identity == NO_SESSION or identity in self._sessions:
            identity = self._random_id()
        session = self._sessions[identity] = FetchSession(identity, follower)
        return session

    def _close(self, identity: int) -> None:
        session = self._sessions.pop(identity, None)
        if session is not None:
            session.close()
