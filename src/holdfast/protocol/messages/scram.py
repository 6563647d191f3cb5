"""Passwords for SASL/SCRAM, salted before they are sent (KIP-554)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.protocol.codec.structs import Struct
from holdfast.protocol.codec.types import Bytes, Int8, Int16, Int32, String
from holdfast.protocol.message import Request, Response


class DescribeUserScramCredentialsRequest(Request, api_key=50, versions="0", flexible=0):
    """Ask which users have a password. None means all."""

    users: Sequence[UserName] | None


class UserName(Struct):
    name: String


class DescribeUserScramCredentialsResponse(Response, api_key=50, versions="0", flexible=0):
    """The mechanisms and iteration counts of each user; never a secret."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    results: Sequence[DescribeUserScramCredentialsResult]


class DescribeUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16
    error_message: String | None
    credential_infos: Sequence[ScramCredentialInfo]


class ScramCredentialInfo(Struct):
    mechanism: Int8
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    iterations: Int32


class AlterUserScramCredentialsRequest(Request, api_key=51, versions="0", flexible=0):
    """Set or remove passwords."""

    deletions: Sequence[ScramCredentialDeletion]
    upsertions: Sequence[ScramCredentialUpsertion]


class ScramCredentialDeletion(Struct):
    name: String
    mechanism: Int8


class ScramCredentialUpsertion(Struct):
    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes


class AlterUserScramCredentialsResponse(Response, api_key=51, versions="0", flexible=0):
    """Whether each user has its new password."""

    throttle_time_ms: Int32 = 0
    results: Sequence[AlterUserScramCredentialsResult]


class AlterUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16
    error_message: String | None
