"""Any order of joins, syncs, commits, departures, silence, failed writes and fail-overs is safe."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.core.groups import GroupState, Leaver
from holdfast.model import TopicPartition
from tests.properties.group_clients import Client, Driver
from tests.unit.core.groups.support import T0, T1, U0, G

pytestmark = pytest.mark.slow

places = st.integers(0, 5)
partitions = st.sampled_from((T0, T1, U0))


class GroupsMachine(RuleBasedStateMachine):
    """Six consumers, of which two pairs share one static instance id each, and an administrator."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        instances = (None, None, None, "i", "i", "j")
        self.clients = [
            Client(f"client-{place}", instance) for place, instance in enumerate(instances)
        ]
        self.ids = 0

    def new_id(self) -> str:
        self.ids += 1
        return f"m{self.ids}"

    # Members.

    @rule(place=places, hurries=st.booleans(), skips=st.booleans(), changed=st.booleans())
    def join(self, place: int, hurries: bool, skips: bool, changed: bool) -> None:
        client = self.clients[place]
        self.driver.ask_join(client, self.new_id(), hurries=hurries, skips=skips, changed=changed)

    @rule()
    def come_to_rest(self) -> None:
        """A time without faults: most interesting changes begin in a Stable group."""
        driver = self.driver
        driver.refusing = False
        for _ in range(3):
            driver.move_high_watermark(len(driver.appended))
            group = driver.groups.group(G)
            if group is not None and group.state is GroupState.STABLE:
                return
            for client in (self.clients[place] for place in (0, 1, 3, 5)):
                if client not in driver.joins.values():
                    driver.ask_join(client, self.new_id(), hurries=True, skips=True, changed=False)
            driver.pass_time(3_000)
            self.all_sync()
            driver.move_high_watermark(len(driver.appended))

    @rule(place=places)
    def sync(self, place: int) -> None:
        client = self.clients[place]
        if client.generation >= 0 and self.driver.groups.group(G):
            self.driver.ask_sync(client)

    @rule()
    def all_sync(self) -> None:
        for place in range(len(self.clients)):
            self.sync(place)

    @rule(place=places)
    def heartbeat(self, place: int) -> None:
        self.driver.groups.heartbeat(self.clients[place].caller(), self.driver.now_ms)

    @rule(place=places)
    def leave(self, place: int) -> None:
        client = self.clients[place]
        self.driver.leave(Leaver(client.member_id, client.instance))
        client.forget()

    @rule(place=places)
    def restart(self, place: int) -> None:
        """A static client restarts with its instance id, any other as a new member."""
        self.clients[place].forget()

    @rule(place=st.sampled_from((3, 4, 5)), skips=st.booleans())
    def restart_static(self, place: int, skips: bool) -> None:
        self.restart(place)
        self.join(place, True, skips, False)

    # Offsets and administration.

    @rule(place=places, offset=st.integers(0, 9), partition=partitions)
    def commit(self, place: int, offset: int, partition: TopicPartition) -> None:
        self.driver.commit(offset, self.clients[place].caller(), partitions=(partition,))

    @rule(offset=st.integers(0, 9))
    def commit_from_outside(self, offset: int) -> None:
        self.driver.commit(offset, partitions=(T0, U0))

    @rule(partition=partitions)
    def delete_offset(self, partition: TopicPartition) -> None:
        self.driver.delete_offsets(partition)

    @rule()
    def delete_group(self) -> None:
        self.driver.delete()

    @rule()
    def delete_partition(self) -> None:
        self.driver.run(self.driver.groups.partitions_deleted((U0,), self.driver.now_ms))

    # Time, the log, the coordinator.

    @rule(seconds=st.sampled_from((1, 3, 9, 11, 20, 150)))
    def pass_time(self, seconds: int) -> None:
        self.driver.pass_time(seconds * 1_000)

    @rule(count=st.integers(1, 9))
    def move_high_watermark(self, count: int) -> None:
        self.driver.move_high_watermark(count)

    @precondition(lambda self: self.driver.appended)
    @rule(place=places)
    def time_out(self, place: int) -> None:
        self.driver.time_out(place)

    @rule(refusing=st.sampled_from((False, False, False, True)))
    def refuse_writes(self, refusing: bool) -> None:
        self.driver.refusing = refusing

    @rule(survivors=st.integers(0, 9))
    def fail_over(self, survivors: int) -> None:
        self.driver.fail_over(survivors)

    # What must hold.

    @invariant()
    def all_is_well(self) -> None:
        self.driver.take_answers()
        self.driver.check_offsets()
        self.driver.check_replay()

    def teardown(self) -> None:
        """An end without faults: the group becomes stable, and every request is answered."""
        driver = self.driver
        driver.refusing = False
        driver.move_high_watermark(len(driver.appended))
        for _ in range(4):
            driver.pass_time(25_000)
            driver.move_high_watermark(len(driver.appended))
        group = driver.groups.group(G)
        assert group is None or group.state is GroupState.EMPTY, group.state
        assert len(driver.answers) == driver.asked
        self.all_is_well()
        driver.fail_over(0)


TestGroups = GroupsMachine.TestCase
