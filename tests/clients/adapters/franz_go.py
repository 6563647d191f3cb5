"""franz-go: the newest versions of the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from tests.clients.adapters.program import ProgramClient
from tests.clients.tools import franz_go


class FranzGo(ProgramClient):
    """All that kadm and kgo can do."""

    @classmethod
    def command(cls) -> Sequence[str]:
        return [franz_go()]
