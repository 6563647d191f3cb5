"""Code that AlterConfigs and IncrementalAlterConfigs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from holdfast.broker.controller.config_changes import (
    BROKER,
    TOPIC,
    Asked,
    alter_broker_configs,
    alter_topic_configs,
)
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.controller.topic_validation import RefusedError
from holdfast.broker.settings import ConfigRefusedError
from holdfast.model import ErrorCode

RESOURCE_NAMES: Final = {
    0: "UNKNOWN", 2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP",
}  # fmt: skip

GROUP: Final = 32

Result = tuple[ErrorCode, str | None]


class ConfigResource(NamedTuple):
    """The resource whose settings change, and the changes."""

    kind: int
    name: str
    asked: Asked


async def alter_each(
    service: ControllerService, resources: Sequence[ConfigResource], *, validate_only: bool
) -> list[Result]:
    """Change one resource after the other; each succeeds or fails alone."""
    named = Counter((one.kind, one.name) for one in resources)
    results: list[Result] = []
    for one in resources:
        if named[one.kind, one.name] > 1:
            message = "Each resource must appear at most once."
            results.append((ErrorCode.INVALID_REQUEST, message))
            continue
        try:
            await _alter(service, one, validate_only=validate_only)
            results.append((ErrorCode.NONE, None))
        except (RefusedError, ConfigRefusedError) as error:
            results.append((error.code, error.message))
    return results


async def _alter(
    service: ControllerService, resource: ConfigResource, *, validate_only: bool
) -> None:
    if resource.kind == TOPIC:
        await alter_topic_configs(
            service, resource.name, resource.asked, validate_only=validate_only
        )
    elif resource.kind == BROKER:
        await alter_broker_configs(
            service, resource.name, resource.asked, validate_only=validate_only
        )
    elif resource.kind == GROUP:
        raise _no_group_settings(resource.name)
    else:
        raise RefusedError(ErrorCode.INVALID_REQUEST, unexpected(resource.kind))


def _no_group_settings(group: str) -> RefusedError:
    if not group:
        error = ErrorCode.INVALID_REQUEST
        return RefusedError(error, "Default group resources are not allowed.")
    message = "This broker serves groups of the classic protocol, which have no settings of a group"
    return RefusedError(ErrorCode.INVALID_CONFIG, message)


def unexpected(kind: int) -> str:
    """The error for a resource that has no settings here."""
    return f"Unexpected resource type {RESOURCE_NAMES.get(kind, 'UNKNOWN')}."
