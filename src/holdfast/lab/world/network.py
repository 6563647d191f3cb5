"""The simulated network: messages wait here until the scheduler delivers or drops them.

The network guarantees nothing: the scheduler chooses order, loss and duplication. Links are
one-way, so a link that is broken in one direction is not a special case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.lab.world.messages import Envelope, Payload


class Network:
    """Messages in flight, and the links that are disconnected."""

    def __init__(self) -> None:
        self.pending: list[Envelope] = []
        self._disconnected: dict[tuple[str, str], None] = {}
        self._count = 0
        self.on_send: Callable[[Envelope], None] | None = None
        """Called for every message sent, so that a scheduler can plan its delivery."""

    def send(self, source: str, target: str, payload: Payload, cause: int | None) -> None:
        """Put a message on its way."""
        envelope = Envelope(source, target, payload, cause, self._count)
        self._count += 1
        self.pending.append(envelope)
        if self.on_send:
            self.on_send(envelope)

    def take(self, envelope: Envelope) -> bool:
        """Remove a message from the wire; False if it is gone already."""
        if not any(one is envelope for one in self.pending):
            return False
        self.pending = [one for one in self.pending if one is not envelope]
        return True

    def between(self, source: str, target: str) -> list[Envelope]:
        """The messages in flight on one link, oldest first."""
        return [one for one in self.pending if one.source == source and one.target == target]

    def drop_node(self, node: str, *, keep_sent: bool = False) -> list[Envelope]:
        """Drop the messages to a node, and those from it unless `keep_sent`; returns them."""

        def dies(one: Envelope) -> bool:
            return one.target == node or (one.source == node and not keep_sent)

        gone = [one for one in self.pending if dies(one)]
        self.pending = [one for one in self.pending if not dies(one)]
        return gone

    def disconnect(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Disconnect the links from each source to each target."""
        for source in sources:
            for target in targets:
                if source != target:
                    self._disconnected[source, target] = None

    def reconnect(self) -> None:
        """Reconnect every link."""
        self._disconnected.clear()

    def is_disconnected(self, source: str, target: str) -> bool:
        """Whether messages over this link are lost."""
        return (source, target) in self._disconnected

    @property
    def disconnected(self) -> tuple[tuple[str, str], ...]:
        """Every link that is disconnected now."""
        return tuple(self._disconnected)
