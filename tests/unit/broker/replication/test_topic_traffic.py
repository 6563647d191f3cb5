"""The counts of topics: shared by their partitions, kept in the totals."""

from __future__ import annotations

from holdfast.broker.replication.topic_traffic import Traffic


def test_the_partitions_of_a_topic_share_one_count() -> None:
    traffic = Traffic()
    first, second, other = traffic.join("t"), traffic.join("t"), traffic.join("other")
    assert first is second
    assert first is not other


def test_a_topic_is_forgotten_with_its_last_partition_and_the_totals_never_fall() -> None:
    traffic = Traffic()
    for _ in range(2):
        traffic.join("t").bytes_in += 10
    traffic.join("other").bytes_in += 1
    traffic.leave("t")
    assert traffic.topics["t"].bytes_in == 20
    traffic.leave("t")
    assert list(traffic.topics) == ["other"]
    assert traffic.total().bytes_in == 21
    assert traffic.join("t").bytes_in == 0
    assert traffic.total().bytes_in == 21
