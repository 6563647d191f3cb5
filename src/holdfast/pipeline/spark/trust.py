"""A trust store for a Java without certificates of its own: those that this Python trusts.

Debian fills Java's list of certificates when the package is installed. A Java that was only
unpacked has none and cannot open TLS connections. The format is Java's old key store (JKS, version
2): a count, the certificates, a digest over a well-known password.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from pathlib import Path
from typing import Final

MAGIC: Final = 0xFEEDFEED
VERSION: Final = 2
TRUSTED_CERTIFICATE: Final = 2
PASSWORD: Final = "changeit"  # noqa: S105  # Java's own default; it hides nothing
WHITENER: Final = b"Mighty Aphrodite"
"""Part of the format."""


def write_trust_store(path: Path) -> None:
    """All certificates of this machine, as Python finds them."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    body = struct.pack(">III", MAGIC, VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", TRUSTED_CERTIFICATE) + _text(f"ca{number}") + bytes(8)
        body += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    digest = hashlib.sha1(PASSWORD.encode("utf-16-be") + WHITENER + body, usedforsecurity=False)
    path.write_bytes(body + digest.digest())


def _text(word: str) -> bytes:
    return struct.pack(">H", len(word)) + word.encode("ascii")
