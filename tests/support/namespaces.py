"""Three machines in one: network namespaces with their own addresses, joined by a switch.

    with Namespaces() as machines:
        machines.command(1)          # what starts a process on machine 1; 0: beside the switch
        machines.address(1)          # "10.77.0.1"
        machines.strike("isolate", 1); machines.heal()

The kernel itself loses packets. A neighbour entry with a wrong address blocks a link, in one
direction or in both. Delay and loss come from a slow link: a token bucket with a long or a short
queue. Needs root and `ip` and `tc`; `why_missing` says what is not there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Final, Self

NOWHERE: Final = "02:00:00:00:00:ff"
"""No machine has this hardware address."""
MACHINES: Final = (1, 2, 3)
SWITCH: Final = 0
SLOW: Final = ("rate", "4mbit", "burst", "8kb", "latency", "800ms")
LOSSY: Final = ("rate", "2mbit", "burst", "8kb", "latency", "1ms")


def why_missing() -> str | None:
    """Why namespaces cannot be created here, or None."""
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"namespaces need {tool}"
    name = f"holdfast-{os.getpid()}-try"
    made = _run("ip", "netns", "add", name)
    if made.returncode:
        return f"namespaces are not allowed here: {made.stderr.strip()}"
    tried = _run("tc", "-n", name, "qdisc", "add", "dev", "lo", "root", "tbf", *SLOW)
    _run("ip", "netns", "delete", name)
    return f"a link cannot be slowed here: {tried.stderr.strip()}" if tried.returncode else None


class Namespaces:
    """Machines 1 to 3, and 0 where the switch and clients are."""

    def __init__(self, opening: str | None = None) -> None:
        """`opening`: the prefix of the names of existing namespaces."""
        self.opening = opening or f"holdfast-{os.getpid()}"

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def name(self, machine: int) -> str:
        return f"{self.opening}-{machine}"

    def address(self, machine: int) -> str:
        return f"10.77.0.{machine or 254}"

    def command(self, machine: int) -> tuple[str, ...]:
        """The prefix of a command that runs on this machine."""
        return ("ip", "netns", "exec", self.name(machine))

    def _make(self) -> None:
        for machine in (SWITCH, *MACHINES):
            _must("ip", "netns", "add", self.name(machine))
            self._ip(machine, "link", "set", "lo", "up")
        self._ip(SWITCH, "link", "add", "switch", "type", "bridge")
        self._ip(SWITCH, "addr", "add", f"{self.address(SWITCH)}/24", "dev", "switch")
        self._ip(SWITCH, "link", "set", "switch", "up")
        for machine in MACHINES:
            peer = ("peer", "name", "eth0", "netns", self.name(machine))
            self._ip(SWITCH, "link", "add", f"port{machine}", "type", "veth", *peer)
            self._ip(SWITCH, "link", "set", f"port{machine}", "master", "switch", "up")
            self._ip(machine, "addr", "add", f"{self.address(machine)}/24", "dev", "eth0")
            self._ip(machine, "link", "set", "eth0", "up")

    def _remove(self) -> None:
        for machine in (SWITCH, *MACHINES):
            _run("ip", "netns", "delete", self.name(machine))

    def _ip(self, machine: int, *words: str) -> None:
        _must("ip", "-n", self.name(machine), *words)

    # Faults, as `holdfast.cluster.chaos` names them.

    def strike(self, kind: str, broker: int) -> None:
        """Break the network around a machine."""
        others = [machine for machine in MACHINES if machine != broker]
        match kind:
            case "isolate":
                self._ip(SWITCH, "link", "set", f"port{broker}", "down")
            case "delay":
                self._slow(broker, *SLOW)
            case "drop":
                self._slow(broker, *LOSSY)
            case _:
                for other in others:
                    if kind in ("partition", "one-way"):
                        self._block(broker, other)
                    if kind in ("partition", "deaf"):
                        self._block(other, broker)

    def _block(self, source: int, target: int) -> None:
        to = (self.address(target), "lladdr", NOWHERE, "nud", "permanent", "dev", "eth0")
        self._ip(source, "neighbour", "replace", *to)

    def _slow(self, machine: int, *settings: str) -> None:
        name = self.name(machine)
        _must("tc", "-n", name, "qdisc", "replace", "dev", "eth0", "root", "tbf", *settings)

    def heal(self) -> None:
        """Remove all faults: every link works at full speed again."""
        for machine in MACHINES:
            self._ip(SWITCH, "link", "set", f"port{machine}", "up")
            _run("tc", "-n", self.name(machine), "qdisc", "delete", "dev", "eth0", "root")
            self._ip(machine, "neighbour", "flush", "dev", "eth0", "nud", "permanent")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _must(*command: str) -> None:
    done = _run(*command)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
