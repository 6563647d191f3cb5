"""`holdfast fault`: injects faults into a running cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from holdfast.cli.cluster.up import refused
from holdfast.cli.errors import BadInput
from holdfast.cli.options import data_dir_option, json_option
from holdfast.cli.tables import show_json
from holdfast.cluster import ClusterError
from holdfast.cluster.testserver.server import ask_owner

CODES: Final = "Exit codes: 0 done, 64 bad input, no such cluster or broker, 70 a bug in Holdfast."
PATIENCE_S: Final = 90.0
SCHEMA: Final = "holdfast-fault/1"
Command = Callable[..., None]


@click.group(epilog=CODES)
def fault() -> None:
    """Inject faults into a cluster that 'holdfast up' runs, and end them."""


def _do(data_dir: Path, call: str, **fields: Any) -> Any:
    try:
        return ask_owner(data_dir.absolute(), call, fields, PATIENCE_S)
    except ClusterError as error:
        raise refused(error) from None


def _done(words: str, fault: str, as_json: bool, **content: Any) -> None:
    """Say it to the person, and with --json to the program."""
    if as_json:
        show_json(SCHEMA, {"fault": fault, **content})
    click.echo(words, err=True)


brokers_argument = click.argument(
    "brokers", metavar="BROKER...", nargs=-1, required=True, type=click.IntRange(0)
)


def _simple(name: str, help_text: str) -> None:
    """Add a fault that takes only broker ids."""

    @fault.command(name, help=help_text, epilog=CODES)
    @brokers_argument
    @data_dir_option
    @json_option
    def command(brokers: tuple[int, ...], data_dir: Path, as_json: bool) -> None:
        _do(data_dir, name, brokers=list(brokers))
        _done(f"{name}: broker {', '.join(map(str, brokers))}", name, as_json, brokers=brokers)


for _name, _help in {
    "kill": "kill -9. What was written survives in the page cache.",
    "restart": "Start again; a broker that runs is stopped first.",
    "stop": "A controlled shutdown: leaderships move first.",
    "pause": "Pause the process (SIGSTOP); its session expires meanwhile.",
    "resume": "Continue after a pause.",
    "isolate": "Disconnect from other brokers, clients and the store, both ways.",
    "expire-session": "End the broker's session in the store; it registers again.",
}.items():
    _simple(_name, _help)


@fault.command("power-loss", epilog=CODES)
@brokers_argument
@data_dir_option
@json_option
def power_loss(brokers: tuple[int, ...], data_dir: Path, as_json: bool) -> None:
    """Kill, and remove from the files everything that was not flushed."""
    truncated = _do(data_dir, "power-loss", brokers=list(brokers))
    for broker, files in sorted(truncated.items()):
        lost = sum(before - after for before, after in files.values())
        click.echo(f"broker {broker}: {lost} bytes of {len(files)} files are gone", err=True)
        for path, (before, after) in sorted(files.items()):
            click.echo(f"  {path}: {before} -> {after}", err=True)
    if as_json:
        show_json(SCHEMA, {"fault": "power-loss", "brokers": brokers, "truncated": truncated})


@fault.command(epilog=CODES)
@click.argument("groups", metavar="GROUP...", nargs=-1, required=True)
@data_dir_option
@json_option
def partition(groups: Sequence[str], data_dir: Path, as_json: bool) -> None:
    """Disconnect groups of brokers: a GROUP is 1,2; brokers not named form one more.

    Clients and the store still reach every broker.
    """
    parted = [_numbers(group) for group in groups]
    _do(data_dir, "partition", groups=parted)
    _done(f"partition: {' | '.join(groups)}", "partition", as_json, groups=parted)


@fault.command(epilog=CODES)
@click.argument("brokers", metavar="[BROKER]...", nargs=-1, type=click.IntRange(0))
@data_dir_option
@json_option
def heal(brokers: tuple[int, ...], data_dir: Path, as_json: bool) -> None:
    """End faults of links, store and disks, of all brokers if none is named.

    A log that has failed stays offline until its broker is restarted.
    """
    _do(data_dir, "heal", brokers=list(brokers))
    _done("heal: the faults are ended", "heal", as_json, brokers=brokers)


to_option = click.option(
    "--to", "ends", metavar="END,...", help="Broker ids, or 'clients'; all other brokers if absent."
)


@fault.command(epilog=CODES)
@brokers_argument
@click.option("--ms", required=True, type=click.IntRange(0, 3_600_000), help="How much later.")
@to_option
@data_dir_option
@json_option
def delay(
    brokers: tuple[int, ...], ms: int, ends: str | None, data_dir: Path, as_json: bool
) -> None:
    """Delay what the broker sends."""
    _do(data_dir, "delay", brokers=list(brokers), seconds=ms / 1000, to=_ends(ends))
    words = f"delay: {ms} ms from broker {', '.join(map(str, brokers))}"
    _done(words, "delay", as_json, brokers=brokers, ms=ms)


@fault.command(epilog=CODES)
@brokers_argument
@click.option(
    "--probability", default=1.0, show_default=True, type=click.FloatRange(0, 1), help="Of a loss."
)
@to_option
@data_dir_option
@json_option
def drop(
    brokers: tuple[int, ...], probability: float, ends: str | None, data_dir: Path, as_json: bool
) -> None:
    """Lose what the broker sends, and the connection with it."""
    _do(data_dir, "drop", brokers=list(brokers), probability=probability, to=_ends(ends))
    words = f"drop: {probability:g} from broker {', '.join(map(str, brokers))}"
    _done(words, "drop", as_json, brokers=brokers, probability=probability)


def _disk(name: str, help_text: str) -> None:
    @fault.command(name, help=help_text, epilog=CODES)
    @brokers_argument
    @click.option("--partition", "only", default="", metavar="TOPIC-N", help="Of this one only.")
    @click.option("--directory", default="", metavar="DIR", help="Of this one of log.dirs only.")
    @data_dir_option
    @json_option
    def command(
        brokers: tuple[int, ...], only: str, directory: str, data_dir: Path, as_json: bool
    ) -> None:
        _do(data_dir, name, brokers=list(brokers), partition=only, directory=directory)
        target = " ".join([", ".join(map(str, brokers)), only, directory])
        _done(f"{name}: broker {target}".rstrip(), name, as_json, brokers=brokers)


_disk("disk-full", "Writes fail with ENOSPC from now on.")
_disk("io-error", "Reads, writes and flushes fail with EIO from now on.")
_disk("slow-flush", "Flushes take half a minute longer, until `heal`.")


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise BadInput(f"{text!r} is not a list of broker ids", hint="such as 1,2")
    return [int(part) for part in parts]


def _ends(text: str | None) -> list[int | str] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    return [int(part) if part.isdecimal() else part for part in parts]
