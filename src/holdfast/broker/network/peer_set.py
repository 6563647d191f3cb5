"""The other brokers, each with one connection per purpose."""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.broker.network.links import Links
from holdfast.broker.network.peer_connection import Peer, PeerTimeouts
from holdfast.broker.settings.listeners import Endpoint
from holdfast.model import BrokerId

FETCH: Final = "fetch"


class Peers:
    """Finds the connection to a broker. Fetches have separate connections: they wait at the leader,
    and later answers on the same connection would wait too.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        links: Links,
        own_id: BrokerId,
        patience: PeerTimeouts,
    ) -> None:
        self._loop = loop
        self._links = links
        self._own_id = own_id
        self._patience = patience
        self._endpoints: dict[BrokerId, Endpoint] = {}
        self._peers: dict[tuple[BrokerId, str], Peer] = {}
        self._is_closed = False

    def update(self, broker: BrokerId, endpoint: Endpoint) -> None:
        """Set the address of a broker."""
        if self._endpoints.get(broker) == endpoint:
            return
        self._endpoints[broker] = endpoint
        for (known, _), peer in self._peers.items():
            if known == broker:
                peer.endpoint = endpoint
                peer.reset()

    def listens_at(self, broker: BrokerId) -> Endpoint | None:
        """The address of a broker, if it is known."""
        return self._endpoints.get(broker)

    def knows(self, broker: BrokerId) -> bool:
        """Whether its address is known."""
        return broker in self._endpoints

    def to(self, broker: BrokerId, purpose: str = "") -> Peer:
        """The connection to a broker; KeyError if its address is not known."""
        peer = self._peers.get((broker, purpose))
        if peer is None:
            peer = self._peers[broker, purpose] = Peer(
                self._loop,
                self._links,
                self._own_id,
                broker,
                self._endpoints[broker],
                self._patience.connect_s,
                self._patience.fetch_s if purpose == FETCH else self._patience.answer_s,
            )
            if self._is_closed:
                peer.close()
        return peer

    def close(self) -> None:
        """Close all connections. A broker that stops opens no new one."""
        self._is_closed = True
        for peer in self._peers.values():
            peer.close()
