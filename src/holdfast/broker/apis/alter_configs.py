"""AlterConfigs: replaces all settings of a resource; an omitted setting returns to its default."""

from __future__ import annotations

from holdfast.broker.apis.alter_configs_common import answer_alterations
from holdfast.broker.apis.controller_relay import ControllerRelay
from holdfast.broker.controller.config_changes import Asked
from holdfast.broker.network.calls import Call
from holdfast.broker.settings import replacing
from holdfast.protocol.messages.configs import AlterConfigsResource, AlterConfigsResponse


def handle(relay: ControllerRelay, call: Call) -> None:
    """Replace settings, or (validate_only) check whether that is possible."""

    def asked(resource: AlterConfigsResource) -> Asked:
        wanted = {one.name: one.value for one in resource.configs}
        return lambda own: replacing(own, wanted)

    answer_alterations(relay, call, asked, AlterConfigsResponse)
