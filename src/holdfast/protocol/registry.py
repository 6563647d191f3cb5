"""All APIs with their message classes and versions.

`versions` are those that we can encode and decode; `advertised` are those in a broker's ApiVersions
response. They differ where Kafka's do: see ProduceRequest and InitProducerIdRequest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from holdfast.protocol.message import Request, Response
from holdfast.protocol.messages import (
    acls,
    api_versions,
    cluster,
    committed_offsets,
    configs,
    consumer_groups,
    control,
    fetch,
    group_admin,
    groups,
    metadata,
    offsets,
    produce,
    quotas,
    reassignments,
    sasl,
    scram,
    share_groups,
    topics,
    transaction_admin,
    transactions,
)


@dataclass(frozen=True, slots=True)
class Api:
    """One API."""

    key: int
    """Its number on the wire."""
    name: str
    request: type[Request]
    response: type[Response]
    advertised: range
    """The versions in a broker's response to ApiVersions."""

    @property
    def versions(self) -> range:
        """The versions that can be read and written."""
        return self.request.VERSIONS


_FAMILIES: Final = (
    acls, api_versions, cluster, committed_offsets, configs, consumer_groups, control, fetch,
    group_admin, groups, metadata, offsets, produce, quotas, reassignments, sasl, scram,
    share_groups, topics, transaction_admin, transactions,
)  # fmt: skip
_ADVERTISED: Final = {
    produce.ProduceRequest: range(14),
    transactions.InitProducerIdRequest: range(6),
}
"""Where these are not the versions that can be read; the classes say why."""


def _apis() -> Iterator[Api]:
    """Every request in the families, with the response of the same name."""
    for family in _FAMILIES:
        for title, cls in vars(family).items():
            if isinstance(cls, type) and issubclass(cls, Request) and cls is not Request:
                name = title.removesuffix("Request")
                response: type[Response] = getattr(family, f"{name}Response")
                advertised = _ADVERTISED.get(cls, cls.VERSIONS)
                yield Api(cls.API_KEY, name, cls, response, advertised)


APIS: Final[dict[int, Api]] = {api.key: api for api in sorted(_apis(), key=lambda api: api.key)}
"""Every API by its key, in the order of the keys."""
