"""The addresses of the console."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from holdfast.cluster.errors import ClusterError
from holdfast.web.console.actions import Actions
from holdfast.web.console.answers.advisor import advice_for
from holdfast.web.console.answers.ask import ask, partition_of
from holdfast.web.console.answers.forecast import forecast
from holdfast.web.console.answers.scenario import scenario_text
from holdfast.web.console.faults import FAULTS, request_of
from holdfast.web.console.replay import replay_page
from holdfast.web.console.replica_table import NOT_IN_KAFKA
from holdfast.web.console.reports import find_report, reports_in
from holdfast.web.console.stream import events
from holdfast.web.console.watcher import Watcher
from holdfast.web.theme import DARK, LIGHT, style_sheet, variables

MOST_STREAMS: Final = 32
MOST_MINUTES: Final = 60.0
LONGEST_BODY: Final = 65_536
_KINDS: Final = {"css": "text/css", "js": "text/javascript"}
_OF_PAGES: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; frame-ancestors 'self'; sandbox allow-scripts"
}
"""For the stepper and reports, complete pages with their own style and script: in a sandbox they
cannot reach the console's page and its token."""

Handler = Callable[[Request], Awaitable[Response]]


class Parts(NamedTuple):
    """What the handlers use."""

    watcher: Watcher
    actions: Actions | None
    """None if the cluster cannot be broken from here."""
    reports: Path | None


def application(parts: Parts) -> Starlette:
    """Without the guard."""
    pages = _Pages(parts)
    return Starlette(
        routes=[
            Route("/", pages.index),
            Route("/theme.css", pages.theme),
            Route("/assets/{name}", pages.asset),
            Route("/facts", pages.facts),
            Route("/events", pages.events),
            Route("/stepper", pages.stepper),
            Route("/why", pages.why),
            Route("/forecast", pages.forecast, methods=["POST"]),
            Route("/faults", pages.fault, methods=["POST"]),
            Route("/advice", pages.advice, methods=["POST"]),
            Route("/scenario", pages.scenario),
            Route("/reports", pages.reports),
            Route("/reports/{name}", pages.report),
        ],
        exception_handlers={ClusterError: _refused},
    )


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, ClusterError)
    return JSONResponse({"error": error.message, "hint": error.hint}, 409)


class _Pages:
    """The handlers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._streams = 0

    async def index(self, _: Request) -> Response:
        return HTMLResponse(_asset("console.html"))

    async def theme(self, _: Request) -> Response:
        """The colours and the picture's style, the same as in the stepper."""
        light, dark = variables(LIGHT), variables(DARK)
        rules = (
            f":root{{{light}}}@media (prefers-color-scheme:dark){{:root:not(.light){{{dark}}}}}"
            f":root.dark{{{dark}}}\n{style_sheet(variables=True)}"
        )
        return Response(rules, media_type="text/css")

    async def asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        kind = _KINDS.get(name.rpartition(".")[2])
        if kind is None or name not in _assets():
            return PlainTextResponse("not found", 404)
        return Response(_asset(name), media_type=kind)

    async def facts(self, _: Request) -> Response:
        """What does not change: the faults, and why something is greyed."""
        can_break = self._parts.actions is not None
        return JSONResponse(
            {
                "faults": [one.to_dict() for one in FAULTS] if can_break else [],
                "reasons": NOT_IN_KAFKA,
                "reports": self._parts.reports is not None,
            }
        )

    async def events(self, request: Request) -> Response:
        if self._streams >= MOST_STREAMS:
            return JSONResponse({"error": "too many pages are open"}, 503)
        partition = request.query_params.get("partition", "")

        async def counted() -> Any:
            self._streams += 1
            try:
                async for event in events(self._parts.watcher, partition):
                    yield event
            finally:
                self._streams -= 1

        return StreamingResponse(counted(), media_type="text/event-stream")

    async def stepper(self, request: Request) -> Response:
        """The last minutes of a partition's trace in the stepper."""
        asked = request.query_params
        minutes = min(MOST_MINUTES, max(0.1, _decimal(asked.get("minutes", "5"))))
        partition = partition_of(self._parts.watcher, asked)
        page = await asyncio.to_thread(replay_page, self._parts.watcher, partition, minutes)
        return HTMLResponse(page, headers=_OF_PAGES)

    async def why(self, request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(ask, self._parts.watcher, request.query_params))

    async def forecast(self, request: Request) -> Response:
        body = await _body(request)
        fault, fields = request_of(body.get("call"), body.get("fields"))
        seen = self._parts.watcher.seen
        answer = await asyncio.to_thread(forecast, seen, fault.call, fields)
        return JSONResponse(answer.to_dict())

    async def fault(self, request: Request) -> Response:
        actions = self._parts.actions
        if actions is None:
            raise ClusterError(NOT_IN_KAFKA["faults"])
        body = await _body(request)
        seen = self._parts.watcher.seen
        return JSONResponse(
            await asyncio.to_thread(actions.do, seen, body.get("call"), body.get("fields"))
        )

    async def advice(self, request: Request) -> Response:
        body = await _body(request)
        partition = partition_of(self._parts.watcher, body)
        bootstrap = self._parts.watcher.bootstrap
        return JSONResponse(await asyncio.to_thread(advice_for, bootstrap, partition.topic))

    async def scenario(self, request: Request) -> Response:
        """What was done, as a scenario file of the lab."""
        actions = self._parts.actions
        partition = partition_of(self._parts.watcher, request.query_params)
        if actions is None:
            raise ClusterError(NOT_IN_KAFKA["faults"])
        seen = self._parts.watcher.seen
        text = await asyncio.to_thread(scenario_text, seen, partition, actions.all())
        name = f"{partition.name}.scenario"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return PlainTextResponse(text, headers=headers)

    async def reports(self, _: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(reports_in, self._parts.reports))

    async def report(self, request: Request) -> Response:
        name = request.path_params["name"]
        path = await asyncio.to_thread(find_report, self._parts.reports, name)
        if path is None:
            return PlainTextResponse("not found", 404)
        return FileResponse(path, media_type="text/html", headers=_OF_PAGES)


async def _body(request: Request) -> dict[str, Any]:
    """ClusterError unless it is a JSON object of a sensible size."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > LONGEST_BODY:
            raise ClusterError("the request is too long")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise ClusterError("the request is not JSON") from None
    if not isinstance(body, dict):
        raise ClusterError("the request is not a JSON object")
    return body


def _decimal(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ClusterError("minutes is a number") from None


def _assets() -> list[str]:
    return [one.name for one in files("holdfast.web").joinpath("assets/console").iterdir()]


def _asset(name: str) -> str:
    return files("holdfast.web").joinpath(f"assets/console/{name}").read_text(encoding="utf-8")
