"""The name of this machine for clients."""

from __future__ import annotations

import socket

from holdfast.broker.errors import StartError


def canonical_name() -> str:
    """The name to advertise for an empty host: the canonical name of this machine.

    Kafka asks InetAddress.getLocalHost.getCanonicalHostName. StartError if clients could not
    resolve it.
    """
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        raise StartError(
            f"the name of this machine, {name}, cannot be resolved, so clients could not connect "
            "to it: set advertised.listeners to a name or an address"
        ) from None
    return name
