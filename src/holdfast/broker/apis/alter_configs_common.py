"""Code that AlterConfigs and IncrementalAlterConfigs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Final

from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.config_changes import (
    BROKER,
    TOPIC,
    Asked,
    alter_broker_configs,
    alter_topic_configs,
)
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.errors import RefusedError
from holdfast.broker.network.calls import Call
from holdfast.model import ErrorCode
from holdfast.protocol import Response
from holdfast.protocol.messages.configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResource,
)

RESOURCE_NAMES: Final = {
    0: "UNKNOWN", 2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP",
}  # fmt: skip

GROUP: Final = 32

Result = tuple[ErrorCode, str | None]


def answer_alterations(
    relay: ControllerRelay,
    call: Call,
    asked: Callable[[Any], Asked],
    make_response: Callable[..., Response],
) -> None:
    """Change one resource after the other; each succeeds or fails alone.

    `asked`: the changes that the request has for a resource.
    """
    request = call.request
    resources: Sequence[AlterConfigsResource | IncrementalAlterConfigsResource] = request.resources

    def response(results: Iterable[Result]) -> Response:
        rows = [
            AlterConfigsResourceResponse(
                error_code=error,
                error_message=message,
                resource_type=one.resource_type,
                resource_name=one.resource_name,
            )
            for one, (error, message) in zip(resources, results, strict=False)
        ]
        return make_response(responses=rows)

    def refuse(error: ErrorCode, message: str) -> Response:
        return response(repeat((error, message)))

    async def work(service: ControllerService) -> Response:
        named = Counter((one.resource_type, one.resource_name) for one in resources)
        results: list[Result] = []
        for one in resources:
            kind, name = one.resource_type, one.resource_name
            try:
                if named[kind, name] > 1:
                    message = "Each resource must appear at most once."
                    raise RefusedError(ErrorCode.INVALID_REQUEST, message)
                await _alter(service, kind, name, asked(one), validate_only=request.validate_only)
                results.append((ErrorCode.NONE, None))
            except RefusedError as error:
                results.append((error.code, error.message))
        return response(results)

    relay.answer(call, work, refuse)


async def _alter(
    service: ControllerService, kind: int, name: str, asked: Asked, *, validate_only: bool
) -> None:
    if kind == TOPIC:
        await alter_topic_configs(service, name, asked, validate_only=validate_only)
    elif kind == BROKER:
        await alter_broker_configs(service, name, asked, validate_only=validate_only)
    elif kind == GROUP:
        raise _no_group_settings(name)
    else:
        raise RefusedError(ErrorCode.INVALID_REQUEST, unexpected(kind))


def _no_group_settings(group: str) -> RefusedError:
    if not group:
        error = ErrorCode.INVALID_REQUEST
        return RefusedError(error, "Default group resources are not allowed.")
    message = "This broker serves groups of the classic protocol, which have no settings of a group"
    return RefusedError(ErrorCode.INVALID_CONFIG, message)


def unexpected(kind: int) -> str:
    """The error for a resource that has no settings here."""
    return f"Unexpected resource type {RESOURCE_NAMES.get(kind, 'UNKNOWN')}."
