"""Sends this broker's own requests to the controller that its metadata names."""

from __future__ import annotations

from holdfast.broker.metadata.metadata_cache import Metadata
from holdfast.broker.network.peer_connection import Answered
from holdfast.broker.network.peer_set import Peers
from holdfast.protocol import Request


class ControllerChannel:
    """The way to the controller, which changes."""

    def __init__(self, peers: Peers, metadata: Metadata) -> None:
        self._peers = peers
        self._metadata = metadata

    @property
    def is_open(self) -> bool:
        """Whether there is a controller whose address is known."""
        controller = self._metadata.controller
        return controller is not None and self._peers.knows(controller)

    def send(self, request: Request, version: int, answered: Answered) -> None:
        """Send a request, while the channel is open."""
        controller = self._metadata.controller
        assert controller is not None
        self._peers.to(controller).send(request, version, answered)
