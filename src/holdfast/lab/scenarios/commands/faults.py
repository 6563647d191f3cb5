"""Commands that crash, stop, pause and restart nodes, and break disks."""

from __future__ import annotations

from holdfast.lab.scenarios.commands.registry import CommandError, Stage, command, need, number
from holdfast.lab.scenarios.scenario import Command
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.clients import SimConsumer
from holdfast.lab.world.disk import SimDisk


@command("crash NODE … [keep=written|flushed] [torn=N] [wire=lost|kept]")
def crash(stage: Stage, given: Command) -> None:
    """A process dies (its page cache survives), or with keep=flushed its machine loses power.

    With wire=kept the messages it has sent still arrive.
    """
    keep = given.options.get("keep", "written")
    wire = given.options.get("wire", "lost")
    torn = number(given.options.get("torn", "0"), "torn")
    if keep not in ("written", "flushed"):
        raise CommandError(f"keep={keep}?", "keep=written (the process died) or keep=flushed")
    if wire not in ("lost", "kept"):
        raise CommandError(f"wire={wire}?", "wire=lost or wire=kept (what it sent still arrives)")
    for name in given.words:
        if name == "controller":
            stage.world.controller.alive = False
            stage.world.break_connections(stage.world.controller_name)
        elif isinstance(stage.world.clients.get(name), SimConsumer):
            stage.consumer(name).crash()
        else:
            broker = stage.living(name)
            if keep == "written":
                broker.crash()
            else:
                broker.lose_power(torn)
            stage.world.break_connections(name, keep_sent=wire == "kept")


def _epoch(broker: SimBroker) -> int | None:
    epoch = broker.incarnation.broker_epoch
    return epoch if epoch >= 0 else None


@command("power-loss BROKER …")
def power_loss(stage: Stage, given: Command) -> None:
    """The machine of a broker that is already down loses power: its page cache goes too."""
    for name in given.words:
        broker = stage.broker(name)
        if broker.alive:
            raise CommandError(f"{name} is running", f"write 'crash {name} keep=flushed'")
        broker.lose_power()


@command("lose-disk BROKER …")
def lose_disk(stage: Stage, given: Command) -> None:
    """A broker that is down loses everything it had stored."""
    for name in given.words:
        broker = stage.broker(name)
        if broker.alive:
            raise CommandError(f"{name} is running", f"crash it first: 'crash {name}'")
        was = broker.disk.end_offset
        broker.disk = SimDisk()
        stage.world.recorder.emit("disk-lost", broker.id, _epoch(broker), was=was)
        if was:
            stage.world.invariants.lost_records(name, "lost its disk")


@command("restart NODE …")
def restart(stage: Stage, given: Command) -> None:
    """A broker or consumer that is down starts again."""
    for name in given.words:
        if isinstance(stage.world.clients.get(name), SimConsumer):
            stage.consumer(name).restart()
            continue
        broker = stage.broker(name)
        if broker.alive:
            raise CommandError(f"{name} is running already")
        broker.start()


@command("stop BROKER")
def stop(stage: Stage, given: Command) -> None:
    """A clean end: everything is flushed. `expire` ends the session."""
    (name,) = need(given.words, 1)
    broker = stage.living(name)
    if broker.disk.fails:
        raise CommandError(f"{name}'s disk fails: it cannot stop cleanly", f"'crash {name}'")
    broker.stop()
    stage.world.break_connections(name)


@command("shutdown BROKER")
def shutdown(stage: Stage, given: Command) -> None:
    """A broker asks the controller to move its leaderships first (`stop` follows)."""
    (name,) = need(given.words, 1)
    stage.living(name).ask_to_stop()


@command("pause NODE …")
def pause(stage: Stage, given: Command) -> None:
    """Pause a process; the others continue."""
    for name in given.words:
        if name == "controller":
            stage.world.controller.paused = True
            continue
        broker = stage.living(name)
        broker.pause()


@command("resume NODE …")
def resume(stage: Stage, given: Command) -> None:
    """Resume a paused process."""
    for name in given.words:
        if name == "controller":
            stage.world.controller.paused = False
            continue
        broker = stage.living(name)
        if not broker.paused:
            raise CommandError(f"{name} is not paused", f"'pause {name}' first")
        broker.resume()


@command("throttle BROKER RECORDS|off")
def throttle(stage: Stage, given: Command) -> None:
    """A follower's link is slow: each of its fetches returns at most RECORDS records."""
    name, limit = need(given.words, 2)
    stage.broker(name).fetch_max_records = 0 if limit == "off" else number(limit, "the limit")


@command("disk BROKER fails|full|unreadable|works|loses-epochs")
def disk(stage: Stage, given: Command) -> None:
    """A disk fails, is full, cannot be read, works again, or has lost its epoch checkpoint."""
    name, what = need(given.words, 2)
    broker = stage.broker(name)
    match what:
        case "fails":
            broker.disk.fails = "input/output error"
        case "full":
            broker.disk.fails = "no space left on device"
        case "unreadable":
            broker.disk.unreadable = "input/output error"
        case "works":
            broker.disk.fails = broker.disk.unreadable = ""
            broker.disk.forgets_writes = False
        case "loses-epochs":
            broker.disk.epoch_checkpoint_lost = True
        case _:
            raise CommandError(
                f"a disk cannot {what!r}", "fails, full, unreadable, works or loses-epochs"
            )


@command("offline BROKER")
def offline(stage: Stage, given: Command) -> None:
    """A broker takes its failed log offline."""
    (name,) = need(given.words, 1)
    broker = stage.living(name)
    stage.world.recorder.emit("went-offline", broker.id, _epoch(broker), reason="log failed")
    broker.run(broker.replica.go_offline("log failed"))


@command("flush BROKER …")
def flush(stage: Stage, given: Command) -> None:
    """The operating system writes a broker's page cache to its disk."""
    for name in given.words:
        broker = stage.broker(name)
        broker.flush(broker.disk.end_offset)
