"""Kafka's client properties, as a file for its tools has them, in librdkafka's words.

Java and librdkafka agree on most names. They differ in how to log in and where keys are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from holdfast.broker.settings.java_properties import PropertiesError, read_properties
from holdfast.cluster.errors import ClusterError

RENAMED: Final = {
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
_JAAS: Final = "sasl.jaas.config"
_JAAS_OPTION: Final = re.compile(r'(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))')
_STORES: Final = tuple(
    f"ssl.{store}.{what}" for store in ("truststore", "keystore") for what in ("type", "location")
)
_ELSEWHERE: Final = (_JAAS, *_STORES, "ssl.truststore.password")
"""They have no equal: what they say goes into other properties."""
_HOST_CHECK: Final = "ssl.endpoint.identification.algorithm"


def read_file(path: Path) -> dict[str, str]:
    """The properties of a file, in librdkafka's words. ClusterError names the line or property."""
    try:
        entries = read_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ClusterError(f"cannot read {path}: {error.strerror}") from None
    except (PropertiesError, UnicodeDecodeError) as error:
        raise ClusterError(f"{path}: {error}") from None
    try:
        return translated({entry.name: entry.value for entry in entries})
    except ClusterError as error:
        raise ClusterError(f"{path}: {error.message}", hint=error.hint) from None


def translated(given: Mapping[str, str]) -> dict[str, str]:
    """Properties of a Java client as those of librdkafka."""
    found = {
        RENAMED.get(name, name): value for name, value in given.items() if name not in _ELSEWHERE
    }
    if (jaas := given.get(_JAAS)) is not None:
        found |= _login(jaas)
    if _HOST_CHECK in given:
        found[_HOST_CHECK] = given[_HOST_CHECK] or "none"
    return found | _trusted(given) | _own_key(given)


def _login(jaas: str) -> dict[str, str]:
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) or plain
        for name, quoted, plain in _JAAS_OPTION.findall(jaas)
    }
    if set(options) != {"username", "password"}:
        raise ClusterError(
            f"{_JAAS} has no username and password",
            hint="only PLAIN and SCRAM can be used; set librdkafka's own properties for others",
        )
    return {f"sasl.{name}": value for name, value in options.items()}


def _trusted(given: Mapping[str, str]) -> dict[str, str]:
    location = given.get("ssl.truststore.location")
    if location is None:
        return {}
    _refuse_jks("ssl.truststore", location, given, ("PEM",))
    return {"ssl.ca.location": location}


def _own_key(given: Mapping[str, str]) -> dict[str, str]:
    location = given.get("ssl.keystore.location")
    if location is None:
        return {}
    _refuse_jks("ssl.keystore", location, given, ("PEM", "PKCS12"))
    if given.get("ssl.keystore.type", "").upper() == "PEM":  # one file with key and certificates
        return {"ssl.key.location": location, "ssl.certificate.location": location}
    return {"ssl.keystore.location": location}


def _refuse_jks(
    store: str, location: str, given: Mapping[str, str], possible: tuple[str, ...]
) -> None:
    kind = given.get(f"{store}.type", "JKS").upper()
    if kind not in possible:
        raise ClusterError(
            f"{store}.location={location} is a {kind} file, which librdkafka cannot read",
            hint=f"convert it, and set {store}.type={possible[0]}",
        )
