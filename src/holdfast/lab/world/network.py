"""The simulated network: messages wait here until somebody delivers, drops or cuts them off.

It promises nothing by itself: order, loss and duplication are the scheduler's choice. Links are
one-way, so a half-broken link is two lines of a story and not a special case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.lab.world.messages import Envelope, Payload


class Network:
    """Messages in flight, and the links that are cut."""

    def __init__(self) -> None:
        self.pending: list[Envelope] = []
        self._cut: dict[tuple[str, str], None] = {}
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
        """What is on its way over one link, oldest first."""
        return [one for one in self.pending if one.source == source and one.target == target]

    def drop_node(self, node: str, *, keep_sent: bool = False) -> list[Envelope]:
        """A node's connections break: everything to it is gone, and what it sent unless kept."""

        def dies(one: Envelope) -> bool:
            return one.target == node or (one.source == node and not keep_sent)

        gone = [one for one in self.pending if dies(one)]
        self.pending = [one for one in self.pending if not dies(one)]
        return gone

    def cut(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Cut the links from each source to each target."""
        for source in sources:
            for target in targets:
                if source != target:
                    self._cut[source, target] = None

    def heal(self) -> None:
        """Mend every link."""
        self._cut.clear()

    def is_cut(self, source: str, target: str) -> bool:
        """Whether messages over this link are lost."""
        return (source, target) in self._cut

    @property
    def cuts(self) -> tuple[tuple[str, str], ...]:
        """Every link that is cut now."""
        return tuple(self._cut)
