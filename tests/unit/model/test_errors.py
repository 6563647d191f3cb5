import struct

import pytest

from holdfast.model.errors import ErrorCode


def test_numbers_run_from_minus_one_without_gap_or_repeat() -> None:
    # An alias, which a repeated number would be, shows up in __members__ only.
    numbers = [int(error) for error in ErrorCode.__members__.values()]
    assert numbers == list(range(-1, 137))


def test_each_error_has_its_own_sentence() -> None:
    for error in ErrorCode:
        assert error.sentence[0].isupper(), error
        assert error.sentence.endswith("."), error
        assert [other for other in ErrorCode if other.sentence == error.sentence] == [error]


# What org.apache.kafka.common.protocol.Errors in kafka-clients 4.4.0 says.
@pytest.mark.parametrize(
    ("number", "name", "retriable"),
    [
        (-1, "UNKNOWN_SERVER_ERROR", False),
        (0, "NONE", False),
        (1, "OFFSET_OUT_OF_RANGE", False),
        (2, "CORRUPT_MESSAGE", True),
        (3, "UNKNOWN_TOPIC_OR_PARTITION", True),
        (6, "NOT_LEADER_OR_FOLLOWER", True),
        (7, "REQUEST_TIMED_OUT", True),
        (10, "MESSAGE_TOO_LARGE", False),
        (19, "NOT_ENOUGH_REPLICAS", True),
        (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", True),
        (27, "REBALANCE_IN_PROGRESS", False),
        (35, "UNSUPPORTED_VERSION", False),
        (41, "NOT_CONTROLLER", True),
        (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", False),
        (46, "DUPLICATE_SEQUENCE_NUMBER", False),
        (47, "INVALID_PRODUCER_EPOCH", False),
        (51, "CONCURRENT_TRANSACTIONS", True),
        (56, "KAFKA_STORAGE_ERROR", True),
        (74, "FENCED_LEADER_EPOCH", True),
        (75, "UNKNOWN_LEADER_EPOCH", True),
        (77, "STALE_BROKER_EPOCH", False),
        (78, "OFFSET_NOT_AVAILABLE", True),
        (84, "ELECTION_NOT_NEEDED", True),
        (90, "PRODUCER_FENCED", False),
        (95, "INVALID_UPDATE_VERSION", False),
        (100, "UNKNOWN_TOPIC_ID", True),
        (103, "INCONSISTENT_TOPIC_ID", True),
        (107, "INELIGIBLE_REPLICA", False),
        (108, "NEW_LEADER_ELECTED", False),
        (133, "SHARE_SESSION_LIMIT_REACHED", True),
        (136, "CONTROLLER_ID_NOT_REGISTERED", False),
    ],
)
def test_agrees_with_the_java_client(number: int, name: str, retriable: bool) -> None:
    error = ErrorCode(number)
    assert (error.name, error.retriable) == (name, retriable)


def test_as_many_are_retriable_as_in_the_java_client() -> None:
    assert sum(error.retriable for error in ErrorCode) == 32


def test_goes_onto_the_wire_as_a_plain_integer() -> None:
    assert struct.pack(">hh", ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.FENCED_LEADER_EPOCH) == (
        b"\xff\xff\x00\x4a"
    )


def test_only_none_is_falsy() -> None:
    assert [error for error in ErrorCode if not error] == [ErrorCode.NONE]


@pytest.mark.parametrize("number", [-2, 137])
def test_an_unassigned_number_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=str(number)):
        ErrorCode(number)
