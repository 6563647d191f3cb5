"""Consumer groups on three real brokers, with librdkafka: members, offsets, killed brokers."""

from __future__ import annotations

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicPartition,
)

from tests.groups.confluent import (
    ANSWER_S,
    admin_of,
    committed,
    describe,
    make_topic,
    member,
    produce,
    read,
    share,
)
from tests.support.brokers import Brokers
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


def test_a_group_continues_where_it_committed(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    produce(brokers, topic, range(40))
    with member(brokers, group) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 40) == list(range(40))
        consumer.commit(asynchronous=False)
    produce(brokers, topic, range(40, 60))
    with member(brokers, group) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 20) == list(range(40, 60))


def test_members_rebalance_when_one_joins_and_when_one_leaves(
    brokers: Brokers,
) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    with member(brokers, group) as first:
        first.subscribe([topic])
        share([first], [4])
        with member(brokers, group) as second:
            second.subscribe([topic])
            share([first, second], [2, 2])
            description = describe(brokers, group)
            assert description.state is ConsumerGroupState.STABLE
            assert len(description.members) == 2
            assert all(one.host == "/127.0.0.1" for one in description.members)
        share([first], [4])


def test_a_static_member_comes_back_without_a_rebalance(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    moves: list[str] = []
    with member(brokers, group, group_instance_id="a") as first:
        first.subscribe([topic], on_revoke=lambda *_: moves.append("revoked"))
        with member(brokers, group, group_instance_id="b", session_timeout_ms=45000) as second:
            second.subscribe([topic])
            share([first, second], [2, 2])
            had = second.assignment()
        moves.clear()
        with member(brokers, group, group_instance_id="b", session_timeout_ms=45000) as second:
            second.subscribe([topic])
            share([first, second], [2, 2])
            assert second.assignment() == had
            assert moves == []
            assert {one.group_instance_id for one in describe(brokers, group).members} == {"a", "b"}


def test_a_killed_coordinator_loses_no_offset_and_its_group_continues(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    produce(brokers, topic, range(40))
    with member(brokers, group) as first, member(brokers, group) as second:
        first.subscribe([topic])
        second.subscribe([topic])
        share([first, second], [2, 2])
        for index in range(4):
            owner = first if TopicPartition(topic, index) in first.assignment() else second
            owner.commit(offsets=[TopicPartition(topic, index, index + 3)], asynchronous=False)
        coordinator = describe(brokers, group).coordinator.id
        brokers.kill(coordinator)
        try:
            assert committed(brokers, group, topic) == [3, 4, 5, 6]
            assert describe(brokers, group).coordinator.id != coordinator
            share([first, second], [2, 2])
            mine = [TopicPartition(one.topic, one.partition, 9) for one in first.assignment()]
            wait_until(lambda: _commits(first, mine), "a commit at the next coordinator", ANSWER_S)
            assert sorted(committed(brokers, group, topic)).count(9) == 2
        finally:
            brokers.start(coordinator)


def _commits(consumer: Consumer, offsets: list[TopicPartition]) -> bool:
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException:
        consumer.poll(0.1)
        return False
    return True


def test_offsets_survive_a_restart_of_all_brokers(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    with member(brokers, group) as consumer:
        offsets = [TopicPartition(topic, index, 10 + index) for index in range(4)]
        consumer.commit(offsets=offsets, asynchronous=False)
    brokers.stop()
    brokers.start()
    assert committed(brokers, group, topic) == [10, 11, 12, 13]


def test_offsets_survive_when_all_brokers_are_killed(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    with member(brokers, group) as consumer:
        offsets = [TopicPartition(topic, index, 20 + index) for index in range(4)]
        consumer.commit(offsets=offsets, asynchronous=False)
    for number in brokers.ports:
        brokers.kill(number)
    brokers.start()
    assert committed(brokers, group, topic) == [20, 21, 22, 23]


def test_an_administrator_lists_sets_and_deletes(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    admin = admin_of(brokers)
    offsets = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 1, 7)])
    admin.alter_consumer_group_offsets([offsets])[group].result(ANSWER_S)
    assert committed(brokers, group, topic) == [0, 7, 0, 0]
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(ANSWER_S).topic_partitions
    assert [(one.topic, one.partition, one.offset) for one in found] == [(topic, 1, 7)]
    empty = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(ANSWER_S)
    assert group in [one.group_id for one in empty.valid]
    stable = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(ANSWER_S)
    assert group not in [one.group_id for one in stable.valid]
    admin.delete_consumer_groups([group])[group].result(ANSWER_S)
    assert committed(brokers, group, topic) == [0, 0, 0, 0]
    with pytest.raises(KafkaException, match="GROUP_ID_NOT_FOUND"):
        admin.delete_consumer_groups([group])[group].result(ANSWER_S)


def test_a_group_with_members_is_not_deleted(brokers: Brokers) -> None:
    topic, group = make_topic(brokers), brokers.new_name("group")
    with member(brokers, group) as consumer:
        consumer.subscribe([topic])
        share([consumer], [4])
        admin = admin_of(brokers)
        with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
            admin.delete_consumer_groups([group])[group].result(ANSWER_S)


def test_offsets_of_a_deleted_topic_are_forgotten(brokers: Brokers) -> None:
    topic, other, group = make_topic(brokers), make_topic(brokers), brokers.new_name("group")
    with member(brokers, group) as consumer:
        offsets = [TopicPartition(name, 0, 5) for name in (topic, other)]
        consumer.commit(offsets=offsets, asynchronous=False)
    admin = admin_of(brokers)
    admin.delete_topics([topic])[topic].result(ANSWER_S)
    wait_until(lambda: committed(brokers, group, topic)[0] == 0, "the offset gone", ANSWER_S)
    assert committed(brokers, group, other) == [5, 0, 0, 0]
