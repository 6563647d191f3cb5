"""AlterConfigs: replaces all settings of a resource; an omitted setting returns to its default."""

from __future__ import annotations

from holdfast.broker.apis.alter_configs_common import ConfigResource, alter_each
from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.network.calls import Call
from holdfast.broker.settings import Alteration, replacing
from holdfast.model import ErrorCode
from holdfast.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(relay: ControllerRelay, call: Call) -> None:
    """Replace settings, or (validate_only) check whether that is possible."""
    request = call.request
    assert isinstance(request, AlterConfigsRequest)

    def refuse(error: ErrorCode, message: str) -> AlterConfigsResponse:
        responses = [_response(one, error, message) for one in request.resources]
        return AlterConfigsResponse(responses=responses)

    async def work(service: ControllerService) -> AlterConfigsResponse:
        resources = [_resource(one) for one in request.resources]
        results = await alter_each(service, resources, validate_only=request.validate_only)
        responses = [
            _response(one, *result) for one, result in zip(request.resources, results, strict=True)
        ]
        return AlterConfigsResponse(responses=responses)

    relay.answer(call, work, refuse)


def _resource(asked: AlterConfigsResource) -> ConfigResource:
    wanted = {one.name: one.value for one in asked.configs}

    def alterations(own: dict[str, str]) -> list[Alteration]:
        return replacing(own, wanted)

    return ConfigResource(asked.resource_type, asked.resource_name, alterations)


def _response(
    asked: AlterConfigsResource, error: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error,
        error_message=message,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )
