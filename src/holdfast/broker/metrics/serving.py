"""The metrics of one broker, from the moment it listens until it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from holdfast.broker.errors import StartError
from holdfast.broker.log_lines import LogLines
from holdfast.broker.metrics.definition import MetricParts, Scrape
from holdfast.broker.metrics.http_server import MetricsServer
from holdfast.broker.metrics.loop_delay import LoopDelay
from holdfast.broker.settings.listeners import Endpoint


class ServedMetrics:
    """The metrics and their server."""

    def __init__(self, parts: MetricParts, loop: asyncio.AbstractEventLoop, log: LogLines) -> None:
        self.address: str | None = None
        """host:port, while it listens."""
        self._parts = parts
        self._log = log
        self._delay = LoopDelay(loop)
        self._server = MetricsServer(self._page, log)

    def _page(self) -> Iterator[bytes]:
        # A broker without metrics, and the simulation, do not load the client library.
        from holdfast.broker.metrics.page import page

        return page(Scrape(self._parts, self._delay.times))

    async def open(self, endpoint: Endpoint) -> None:
        """Listen; StartError if that is impossible."""
        try:
            port = await self._server.open(endpoint.host, endpoint.port)
        except OSError as error:
            raise StartError(
                f"cannot serve metrics on {endpoint} ({error.strerror}): another process may use "
                "it; change holdfast.metrics.listener"
            ) from None
        self.address = str(endpoint._replace(port=port))
        self._delay.start()
        self._log.info("metrics", address=self.address)

    def close(self) -> None:
        """Stop listening."""
        self._delay.stop()
        self._server.close()
        self.address = None
