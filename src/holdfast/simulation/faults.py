"""The faults of a run: what may fail on a machine or between machines, and how often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from holdfast.model import TopicPartition
from holdfast.simulation.checks import Invariants
from holdfast.simulation.clients.forged_commands import forge
from holdfast.simulation.cluster import CLIENTS, SimulatedCluster
from holdfast.simulation.disk.byte_disk import Fault
from holdfast.simulation.machine import LOG_DIRS, Machine
from holdfast.simulation.plan import Plan
from holdfast.simulation.traffic_pace import Pace

AWAY_S: Final = (0.05, 4.0)
LONG_AWAY_S: Final = (4.0, 30.0)
"""How long a broker is down in one of ten cases."""
BLACKOUT: Final = 0.6
"""The probability that all machines lose power together, if every acknowledged record is flushed.
"""

DISK_CALLS: Final = ("append", "truncate", "read", "rename", "create", "flush", "flush_directory")
"""Disk calls: a failed disk refuses one of them."""


class Faults:
    """Injects faults until `stop` is called."""

    def __init__(
        self,
        plan: Plan,
        cluster: SimulatedCluster,
        invariants: Invariants,
        partitions: Sequence[TopicPartition],
        pace: Pace,
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._network = cluster.network
        self._invariants = invariants
        self._partitions = partitions
        self._topic = partitions[0].topic
        self._pace = pace
        self._rng = cluster.rng
        self._actions = [one for one in plan.faults if one in _FAULTS]
        self._disk_failed: dict[int, None] = {}
        self.is_on = True
        self._network.latency_s = plan.latency_ms / 1000
        self._network.torn = 0.2 if "torn-bytes" in plan.faults else 0.0
        for machine in cluster.machines.values():
            machine.on_end = self._back_later
        self._later(plan.fault_every_ms / 1000, self._fault)

    def stop(self) -> None:
        """End all faults: reconnect, resume and restart the machines."""
        self.is_on = False
        self._network.torn = 0.0
        self._reconnect()
        for machine in self._cluster.machines.values():
            machine.disk.on_step = None
            machine.resume()
            if machine.loop is not None and machine.store is not None:
                machine.loop.call_soon(machine.store.reconnect)
            if machine.number in self._disk_failed:
                self._kill(machine)
            machine.start()

    def _later(self, seconds: float, action: Callable[[], object]) -> None:
        """Call `action` from the network's loop: a paused or dead process does not delay it."""
        self._network.kernel.call_later(seconds, action)

    def _fault(self) -> None:
        if not self.is_on:
            return
        busy_s = self._plan.fault_every_ms / 1000 * (0.5 + self._rng.random())
        self._later(self._pace.fault_s(self._cluster.timeline.now_s, busy_s), self._fault)
        if self._actions:
            machines = self._cluster.machines
            machine = machines[self._rng.randrange(1, len(machines) + 1)]
            _FAULTS[self._rng.choice(self._actions)](self, machine)

    def _back_later(self, machine: Machine) -> None:
        away_s = LONG_AWAY_S if self._rng.random() < 0.1 else AWAY_S
        self._later(self._rng.uniform(*away_s) if self.is_on else 0.05, machine.start)

    # Processes and machines.

    def _kill(self, machine: Machine) -> None:
        if machine.is_up:
            self._disk_failed.pop(machine.number, None)
            machine.kill()
            self._back_later(machine)

    def _kill_in_write(self, machine: Machine) -> None:
        if machine.is_up:
            machine.kill_within(self._rng.randrange(40))

    def _power_loss(self, machine: Machine) -> None:
        """One machine loses power, or all do if every acknowledged record is flushed.

        Otherwise one machine at a time loses records, and the next one only after the cluster is
        whole again: Kafka guarantees nothing beyond that.
        """
        if self._plan.flush_messages and self._rng.random() < BLACKOUT:
            if self._rng.random() < 0.3:
                self._blackout()
            elif machine.is_up:
                machine.end_in_flush(self._topic, self._blackout)
            return
        self._invariants.forgive()
        others = [one for one in self._invariants.lossy if one != machine.number]
        if self._plan.flush_messages or not others:
            self._lose_power(machine)

    def _blackout(self) -> None:
        """All machines lose power at the same moment."""
        keeps_unflushed = self._rng.random() < 0.3
        for machine in self._cluster.machines.values():
            self._lose_power(machine, keeps_unflushed=keeps_unflushed)

    def _lose_power(self, machine: Machine, *, keeps_unflushed: bool = True) -> None:
        if machine.is_up:
            self._disk_failed.pop(machine.number, None)
            self._invariants.lossy[machine.number] = None
            machine.lose_power(keeps_unflushed=keeps_unflushed)
            self._back_later(machine)

    def _stop(self, machine: Machine) -> None:
        """A clean stop takes a moment; now and then its disk fails in that moment."""
        if "disk-error" in self._plan.faults and self._rng.random() < 0.3:
            self._disk_error(machine)
        machine.stop()

    def _pause(self, machine: Machine) -> None:
        machine.pause()
        self._later(self._rng.uniform(0.05, 5.0), machine.resume)

    def _controller_loss(self, _: Machine) -> None:
        """The controller's process is killed or paused, or its session ends."""
        for machine in self._cluster.machines.values():
            if machine.broker is not None and machine.broker.controller is not None:
                self._rng.choice((self._kill, self._pause, self._session_expiry))(machine)
                return

    def _disk_error(self, machine: Machine) -> None:
        """The disk fails for the topic's logs, for one log directory or for all. After a while an
        operator repairs it and restarts the broker.
        """
        if machine.is_ready and machine.number not in self._disk_failed:
            self._disk_failed[machine.number] = None
            kind = self._rng.choice(DISK_CALLS)
            where = self._rng.choice((self._topic, LOG_DIRS[1], ""))
            machine.disk.faults.append(Fault(kind, where))
            self._later(self._rng.uniform(0.2, 3.0), lambda: self._kill(machine))

    # The network.

    def _disconnect(self, machine: Machine) -> None:
        others = self._other_ends(machine)
        for other in others:
            self._network.disconnect(machine.host, other)
            self._network.disconnect(other, machine.host)
        self._reconnect_later(machine, others)

    def _disconnect_one_way(self, machine: Machine) -> None:
        others = self._other_ends(machine)
        outwards = self._rng.random() < 0.5
        for other in others:
            self._network.disconnect(
                *((machine.host, other) if outwards else (other, machine.host))
            )
        self._reconnect_later(machine, others)

    def _reconnect_later(self, machine: Machine, others: list[str]) -> None:
        self._cluster.recording.emit("cut", source=machine.host, targets=others)
        self._later(self._rng.uniform(0.1, 5.0), self._reconnect)

    def _reconnect(self) -> None:
        self._network.clear_faults()
        self._cluster.recording.emit("healed")

    def _other_ends(self, machine: Machine) -> list[str]:
        ends = [*(one.host for one in self._cluster.machines.values()), CLIENTS]
        return [one for one in ends if one != machine.host and self._rng.random() < 0.6]

    def _slow(self, machine: Machine) -> None:
        for other in self._other_ends(machine):
            seconds = self._rng.choice((0.05, 0.3, 1.5))
            self._network.slow(machine.host, other, seconds)
            self._network.slow(other, machine.host, seconds)
        self._later(self._rng.uniform(0.5, 5.0), self._network.clear_faults)

    def _reset(self, machine: Machine) -> None:
        self._network.break_connections([machine.host, *self._other_ends(machine)], 0.5)

    def _forged_command(self, machine: Machine) -> None:
        forge(self._cluster, machine, self._rng.choice(self._partitions))

    # The store.

    def _session_expiry(self, machine: Machine) -> None:
        machine.expire_session()

    def _store_away(self, machine: Machine) -> None:
        loop, store = machine.loop, machine.store
        if loop is not None and store is not None and machine.is_ready:
            loop.call_soon(store.disconnect)
            self._later(self._rng.uniform(0.1, 6.0), lambda: loop.call_soon(store.reconnect))


_FAULTS: dict[str, Callable[[Faults, Machine], None]] = {
    "kill": Faults._kill,
    "kill-in-write": Faults._kill_in_write,
    "power-loss": Faults._power_loss,
    "stop": Faults._stop,
    "pause": Faults._pause,
    "cut": Faults._disconnect,
    "one-way-cut": Faults._disconnect_one_way,
    "slow": Faults._slow,
    "reset": Faults._reset,
    "session-expiry": Faults._session_expiry,
    "store-away": Faults._store_away,
    "controller-loss": Faults._controller_loss,
    "disk-error": Faults._disk_error,
    "forged-command": Faults._forged_command,
}
