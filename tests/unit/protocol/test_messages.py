"""What a message definition guarantees: values, defaults, versions, views."""

from __future__ import annotations

import pickle
import subprocess
import sys
import traceback

import pytest

from holdfast.protocol import APIS, MalformedMessage, UnsupportedFieldError, UnsupportedVersionError
from holdfast.protocol.codec.varints import decode_unsigned, encode_unsigned
from holdfast.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchForgottenTopic,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from holdfast.protocol.messages.metadata import MetadataRequest
from holdfast.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)


def produce_request(records: bytes | None) -> ProduceRequest:
    partition = PartitionProduceData(index=1, records=records)
    topic = TopicProduceData(name="t", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=100, topic_data=[topic])


def test_records_are_a_view_of_what_was_read() -> None:
    buffer = bytearray(produce_request(b"batch").encode(9))
    read = ProduceRequest.decode(buffer, 9)
    records = read.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    buffer[buffer.index(b"batch")] = ord("B")
    assert bytes(records) == b"Batch"


def test_records_are_sent_as_they_are() -> None:
    batch = memoryview(bytes(1000))
    partition = FetchPartitionData(
        partition_index=0, error_code=0, high_watermark=1, aborted_transactions=None, records=batch
    )
    topic = FetchableTopicResponse(topic="t", partitions=[partition])
    parts = FetchResponse(responses=[topic]).encode_parts(11)
    assert any(part is batch for part in parts)


def test_null_and_empty_records_differ() -> None:
    for records in (None, b""):
        read = ProduceRequest.decode(produce_request(records).encode(9), 9)
        assert read.topic_data[0].partition_data[0].records == records


def test_all_topics_and_no_topics_differ() -> None:
    assert MetadataRequest(topics=None).encode(1) == b"\xff\xff\xff\xff"
    assert MetadataRequest(topics=[]).encode(1) == b"\0\0\0\0"
    assert MetadataRequest.decode(b"\xff\xff\xff\xff", 1).topics is None


def test_a_null_where_none_may_be_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match=r"topics at byte 0: is null, and may not be"):
        MetadataRequest.decode(b"\xff\xff\xff\xff", 0)


def test_a_field_of_another_version_has_its_default() -> None:
    partition = FetchPartition(partition=0, fetch_offset=5, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=1, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[partition])]
    )
    read = FetchRequest.decode(request.encode(4), 4)
    assert read.session_epoch == -1
    assert read.rack_id == ""
    assert read.topics[0].partitions[0].current_leader_epoch == -1


def test_a_value_that_the_version_cannot_carry_is_refused_by_name() -> None:
    partition = FetchPartition(
        partition=0, fetch_offset=5, partition_max_bytes=1, last_fetched_epoch=3
    )
    topics = [FetchTopic(topic="t", partitions=[partition])]
    request = FetchRequest(max_wait_ms=1, min_bytes=1, topics=topics)
    with pytest.raises(UnsupportedFieldError, match=r"FetchPartition v11 .* last_fetched_epoch=3"):
        request.encode(11)
    assert FetchRequest.decode(request.encode(12), 12).topics[0].partitions == [partition]


def test_an_ignorable_value_is_dropped() -> None:
    request = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[], rack_id="r1")
    assert FetchRequest.decode(request.encode(10), 10).rack_id == ""
    assert FetchRequest.decode(request.encode(11), 11).rack_id == "r1"


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match="ProduceRequest has no version 2"):
        produce_request(None).encode(2)
    with pytest.raises(UnsupportedVersionError, match="ProduceRequest has no version 14"):
        ProduceRequest.decode(b"", 14)


def test_unknown_tags_are_kept_in_order() -> None:
    request = produce_request(b"x")
    request.unknown_tags = {300: b"late", 7: b""}
    wire = request.encode(9)
    assert wire.endswith(b"\x02\x07\x00\xac\x02\x04late")
    read = ProduceRequest.decode(wire, 9)
    assert read.unknown_tags == {7: b"", 300: b"late"}
    assert read.encode(9) == wire


@pytest.mark.parametrize("tags", [b"\x02\x07\x00\x07\x00", b"\x02\x08\x00\x07\x00"])
def test_tags_twice_or_out_of_order_are_malformed(tags: bytes) -> None:
    wire = produce_request(b"x").encode(9)
    with pytest.raises(MalformedMessage, match="tag 7 after tag"):
        ProduceRequest.decode(wire[:-1] + tags, 9)


def test_a_tagged_field_fills_the_size_that_it_announces() -> None:
    request = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[], cluster_id="abc")
    wire = request.encode(12)
    assert wire.endswith(b"\x01\x00\x04\x04abc")
    with pytest.raises(MalformedMessage, match=r": tags at .*: tag 0 has 1 bytes too many"):
        FetchRequest.decode(wire[:-5] + b"\x05\x04abcd", 12)


def test_text_is_as_long_as_every_version_can_carry() -> None:
    for version in (11, 12):
        request = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[], rack_id="x" * 32767)
        wire = request.encode(version)
        assert FetchRequest.decode(wire, version) == request
    with pytest.raises(MalformedMessage, match=r"rack_id .*: 32768 bytes of text, 32767 are"):
        FetchRequest.decode(wire.replace(b"\x80\x80\x02x", b"\x81\x80\x02xx"), 12)
    request.rack_id += "x"
    with pytest.raises(UnsupportedFieldError, match="32768 bytes of text, 32767 are allowed"):
        request.encode(12)


def test_arrays_of_any_length_are_read_back() -> None:
    for count in range(1100):
        topic = FetchForgottenTopic(topic="t", partitions=range(count))
        request = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[], forgotten_topics_data=[topic])
        read = FetchRequest.decode(request.encode(12), 12)
        assert read.forgotten_topics_data[0].partitions == tuple(range(count))


def test_a_forgotten_or_misspelt_field_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="topic_data"):
        ProduceRequest(acks=1, timeout_ms=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="ack"):
        ProduceRequest(ack=1, timeout_ms=1, topic_data=[])  # type: ignore[call-arg]


def test_messages_are_slotted_and_compared_by_value() -> None:
    one, other = produce_request(b"x"), produce_request(b"x")
    assert one == other
    assert one != produce_request(b"y")
    assert one != "x"
    assert not hasattr(one, "__dict__")
    assert repr(one).startswith("ProduceRequest(acks=-1, timeout_ms=100, topic_data=[TopicProduce")
    other.topic_data = tuple(other.topic_data)
    assert one == other


def test_a_malformed_message_travels_between_processes() -> None:
    problem = MalformedMessage("FetchRequest", 4, "topics", 9, "a reason")
    again = pickle.loads(pickle.dumps(problem))
    assert str(again) == str(problem) == "FetchRequest v4: topics at byte 9: a reason"


def test_a_varint_that_does_not_end_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 5 bytes"):
        decode_unsigned(b"\x80" * 12, 0)
    with pytest.raises(ValueError, match="negative"):
        encode_unsigned(-1)


def test_a_traceback_shows_generated_lines() -> None:
    request = MetadataRequest(topics=[])
    request.topics = 3  # type: ignore[assignment]
    with pytest.raises(TypeError) as caught:
        request.encode(0)
    shown = "".join(traceback.format_exception(caught.value))
    assert "<holdfast MetadataRequest v0 encoder>" in shown
    assert "len(v1)" in shown


def test_importing_compiles_no_codec() -> None:
    code = (
        "from holdfast.protocol import APIS\n"
        "classes = [cls for api in APIS.values() for cls in (api.request, api.response)]\n"
        "print(sum(len(cls._encoders) + len(cls._decoders) for cls in classes))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


def test_every_api_of_the_issue_is_there() -> None:
    keys = {
        *range(34),
        *range(35, 38),
        *range(42, 52),
        55,
        56,
        60,
        61,
        65,
        66,
        68,
        69,
        75,
        76,
        78,
        79,
        30_093,
    }
    assert set(APIS) == keys
    for key, api in APIS.items():
        assert key == api.request.API_KEY == api.response.API_KEY
        assert api.request.VERSIONS == api.response.VERSIONS
        assert api.response.__name__ == f"{api.name}Response"
