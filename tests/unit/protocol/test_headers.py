"""Headers, frames, and the special cases of ApiVersions and ControlledShutdown."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from holdfast.model import ErrorCode
from holdfast.protocol import (
    APIS,
    MalformedMessage,
    Request,
    RequestHeader,
    UnsupportedVersionError,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    encode_unsupported_api_versions,
    request_header_version,
    request_start,
    response_header_version,
)
from holdfast.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from holdfast.protocol.messages.control import ControlledShutdownRequest
from holdfast.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse


def one_frame(parts: list[bytes | bytearray | memoryview]) -> bytearray:
    wire = bytearray(b"".join(parts))
    assert int.from_bytes(wire[:4], "big") == len(wire) - 4
    return wire[4:]


def decode_request(frame: bytes | bytearray) -> tuple[RequestHeader, Request]:
    """As a broker does; the header in its fast form and its slow one."""
    api, version, correlation_id, client_id, position = request_start(bytearray(frame))
    header, body = decode_request_header(frame)
    assert (header.request_api_key, header.request_api_version) == (api.key, version)
    assert (header.correlation_id, header.client_id, body) == (correlation_id, client_id, position)
    return header, api.request.decode(memoryview(frame)[position:], version)


@pytest.mark.parametrize(("version", "header"), [(0, 1), (3, 1), (4, 2)])
def test_a_flexible_request_has_a_flexible_header(version: int, header: int) -> None:
    assert request_header_version(APIS[12], version) == header
    assert response_header_version(APIS[12], version) == header - 1


def test_the_answer_to_api_versions_never_has_a_flexible_header() -> None:
    assert {response_header_version(APIS[18], version) for version in range(10)} == {0}
    assert request_header_version(APIS[18], 3) == 2


def test_controlled_shutdown_0_has_no_client_id() -> None:
    request = ControlledShutdownRequest(broker_id=7)
    frame = one_frame(encode_request(request, 0, correlation_id=9, client_id=None))
    assert bytes(frame) == b"\0\x07\0\0\0\0\0\x09\0\0\0\x07"
    header, read = decode_request(frame)
    assert header == RequestHeader(request_api_key=7, request_api_version=0, correlation_id=9)
    assert read == request


@pytest.mark.parametrize("version", HeartbeatRequest.VERSIONS)
@pytest.mark.parametrize("client_id", ["me", "", None])
def test_a_request_and_its_answer_survive_the_wire(version: int, client_id: str | None) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    frame = one_frame(encode_request(request, version, correlation_id=5, client_id=client_id))
    header, read = decode_request(frame)
    assert (header.correlation_id, header.client_id, read) == (5, client_id, request)
    answer = HeartbeatResponse(error_code=27)
    frame = one_frame(encode_response(answer, version, correlation_id=5))
    response_header, response = decode_response(frame, APIS[12], version)
    assert (response_header.correlation_id, response) == (5, answer)


def test_a_future_api_versions_is_recognised_and_answered_in_version_0() -> None:
    request = ApiVersionsRequest(client_software_name="n", client_software_version="1")
    wire = bytearray(b"".join(encode_request(request, 3, correlation_id=8, client_id="c")))
    wire[6:8] = b"\0\x63"  # version 99, which nobody has defined
    frame = wire[4:]
    header, _ = decode_request_header(frame)
    assert (header.request_api_version, header.correlation_id, header.client_id) == (99, 8, "c")
    with pytest.raises(UnsupportedVersionError, match="ApiVersionsRequest has no version 99"):
        decode_request(frame)
    answer = b"".join(encode_unsupported_api_versions(correlation_id=8))
    assert answer == bytes.fromhex("00000010 00000008 0023 00000001 0012 0000 0005")
    _, read = decode_response(answer[4:], APIS[18], 5)  # asked in 5, answered in 0
    keys = [ApiVersion(api_key=18, min_version=0, max_version=5)]
    assert read == ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys)


def test_random_frames_are_read_refused_or_malformed() -> None:
    rng = Random(4)
    for _ in range(3000):
        frame = bytes([0, rng.randrange(90), 0, rng.randrange(20)]) + rng.randbytes(20)
        with suppress(MalformedMessage, UnsupportedVersionError):
            decode_request(frame[: rng.randrange(25)])


@pytest.mark.parametrize("version", HeartbeatRequest.VERSIONS)
@pytest.mark.parametrize("client_id", ["me", "", None, "schön"])
def test_the_fast_path_reads_what_the_decoder_reads(version: int, client_id: str | None) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    parts = encode_request(request, version, correlation_id=5, client_id=client_id)
    frame = bytearray(one_frame(parts))
    _, position = decode_request_header(frame)
    assert request_start(frame) == (APIS[12], version, 5, client_id, position)


def test_the_fast_path_accepts_no_more_than_the_decoder() -> None:
    rng = Random(5)
    for _ in range(3000):
        key, version, size = rng.randrange(90), rng.randrange(20), rng.randrange(-2, 6)
        start = bytes([0, key, 0, version, 0, 0, 0, 9]) + size.to_bytes(2, "big", signed=True)
        name = rng.choice([b"abcde", b"\xff\xfe\xfd\xfc\xfb", rng.randbytes(5)])
        frame = bytearray(start + name + bytes([rng.choice([0, 0, 1])]) + rng.randbytes(9))
        frame = frame[: rng.randrange(26)]
        try:
            header, position = decode_request_header(frame)
        except (MalformedMessage, UnsupportedVersionError) as error:
            with pytest.raises(type(error)):
                request_start(frame)
        else:
            expected = (version, header.correlation_id, header.client_id, position)
            assert request_start(frame)[1:] == expected


def test_an_unknown_api_is_not_guessed_at() -> None:
    with pytest.raises(UnsupportedVersionError, match="API 999 has no version 1"):
        decode_request_header(b"\x03\xe7\0\1\0\0\0\0\xff\xff")


@pytest.mark.parametrize("size", range(10))
def test_a_truncated_header_is_malformed(size: int) -> None:
    with pytest.raises(MalformedMessage, match="RequestHeader"):
        decode_request(b"\0\x0c\0\0\0\0\0\0\0\2cc"[:size])


def test_produce_is_advertised_from_0_and_read_from_3() -> None:
    assert APIS[0].advertised == range(14)
    assert APIS[0].versions == range(3, 14)


def test_the_unstable_init_producer_id_6_is_read_and_not_advertised() -> None:
    assert APIS[22].advertised == range(6)
    assert APIS[22].versions == range(7)
