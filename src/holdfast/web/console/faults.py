"""The faults that the page offers: those of `holdfast fault`, with what each one needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from holdfast.cluster.errors import ClusterError


class Fault(NamedTuple):
    """One fault. The page builds its form from this."""

    call: str
    title: str
    meaning: str
    fields: tuple[str, ...] = ("brokers",)
    """brokers, groups, to, seconds, probability, partition: what the form asks for."""
    needs: str = "running"
    """running, down or any: the brokers that it can be done to."""
    kind: str = "process"

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


FAULTS: Final = (
    Fault("kill", "Kill", "kill -9. What was written survives in the page cache."),
    Fault("power-loss", "Lose power", "Kill, and remove all that was not flushed."),
    Fault("stop", "Stop", "A controlled shutdown: leaderships move first."),
    Fault("restart", "Restart", "Start again; a running broker is stopped first.", needs="any"),
    Fault("pause", "Pause", "SIGSTOP: the session expires meanwhile."),
    Fault("resume", "Resume", "Continue after a pause.", needs="paused"),
    Fault("isolate", "Isolate", "Disconnect from brokers, clients and store.", kind="link"),
    Fault("partition", "Partition", "Disconnect groups of brokers.", ("groups",), kind="link"),
    Fault("delay", "Delay", "Delay what it sends.", ("brokers", "to", "seconds"), kind="link"),
    Fault("drop", "Drop", "Lose what it sends.", ("brokers", "to", "probability"), kind="link"),
    Fault("disk-full", "Disk full", "Writes fail.", ("brokers", "partition"), kind="disk"),
    Fault("io-error", "I/O error", "The disk fails.", ("brokers", "partition"), kind="disk"),
    Fault("slow-flush", "Slow flush", "Flushes take 30 s more.", ("brokers",), kind="disk"),
    Fault("expire-session", "Expire session", "End its session in the store.", kind="store"),
    Fault("heal", "End faults", "End faults of links, store and disks.", kind="end"),
)
BY_CALL: Final = {one.call: one for one in FAULTS}


def request_of(call: object, fields: object) -> tuple[Fault, dict[str, Any]]:
    """A fault that a page asks for. ClusterError unless it is one of the table.

    The cluster checks the values of the fields; what is checked here is that a page can ask for
    faults only, not for every call that the cluster's socket has.
    """
    fault = BY_CALL.get(call) if isinstance(call, str) else None
    if fault is None:
        raise ClusterError("there is no such fault")
    if not isinstance(fields, Mapping) or any(name not in fault.fields for name in fields):
        raise ClusterError(f"{fault.call} has the fields {', '.join(fault.fields)}")
    return fault, dict(fields)


def in_words(call: str, fields: Mapping[str, Any]) -> str:
    """The command line that does the same."""
    words = [call, *(str(one) for one in fields.get("brokers", ()))]
    words += [",".join(map(str, group)) for group in fields.get("groups", ())]
    if "seconds" in fields:
        words.append(f"--ms {round(fields['seconds'] * 1000)}")
    if "probability" in fields:
        words.append(f"--probability {fields['probability']:g}")
    if fields.get("to"):
        words.append(f"--to {','.join(map(str, fields['to']))}")
    if fields.get("partition"):
        words.append(f"--partition {fields['partition']}")
    return " ".join(words)
