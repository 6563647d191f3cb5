"""IncrementalAlterConfigs: sets, deletes, appends to or subtracts from settings (KIP-339)."""

from __future__ import annotations

from holdfast.broker.apis.alter_configs_common import answer_alterations
from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.config_changes import Asked
from holdfast.broker.network.calls import Call
from holdfast.broker.settings import Alteration
from holdfast.protocol.messages.configs import (
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)


def handle(relay: ControllerRelay, call: Call) -> None:
    """Change settings, or (validate_only) check whether that is possible."""

    def asked(resource: IncrementalAlterConfigsResource) -> Asked:
        wanted = [Alteration(one.name, one.config_operation, one.value) for one in resource.configs]
        return lambda _: wanted

    answer_alterations(relay, call, asked, IncrementalAlterConfigsResponse)
