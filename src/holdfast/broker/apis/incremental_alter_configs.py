"""IncrementalAlterConfigs: sets, deletes, appends to or subtracts from settings (KIP-339)."""

from __future__ import annotations

from holdfast.broker.apis.alter_configs_common import ConfigResource, alter_each
from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.network.calls import Call
from holdfast.broker.settings import Alteration
from holdfast.model import ErrorCode
from holdfast.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)


def handle(relay: ControllerRelay, call: Call) -> None:
    """Change settings, or (validate_only) check whether that is possible."""
    request = call.request
    assert isinstance(request, IncrementalAlterConfigsRequest)

    def refuse(error: ErrorCode, message: str) -> IncrementalAlterConfigsResponse:
        responses = [_response(one, error, message) for one in request.resources]
        return IncrementalAlterConfigsResponse(responses=responses)

    async def work(service: ControllerService) -> IncrementalAlterConfigsResponse:
        resources = [_resource(one) for one in request.resources]
        results = await alter_each(service, resources, validate_only=request.validate_only)
        responses = [
            _response(one, *result) for one, result in zip(request.resources, results, strict=True)
        ]
        return IncrementalAlterConfigsResponse(responses=responses)

    relay.answer(call, work, refuse)


def _resource(asked: IncrementalAlterConfigsResource) -> ConfigResource:
    wanted = [Alteration(one.name, one.config_operation, one.value) for one in asked.configs]
    return ConfigResource(asked.resource_type, asked.resource_name, lambda _: wanted)


def _response(
    asked: IncrementalAlterConfigsResource, error: ErrorCode, message: str | None
) -> IncrementalAlterConfigsResourceResponse:
    return IncrementalAlterConfigsResourceResponse(
        error_code=error,
        error_message=message,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )
