"""`holdfast up`: a cluster on this machine, until Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Final

import click

from holdfast.cli.errors import BadInput
from holdfast.cluster import Cluster, ClusterError
from holdfast.cluster.testserver.server import OWNER_SOCKET, serve_owner

DATA_DIR: Final = "holdfast-data"
LOOK_S: Final = 0.5

data_dir_option = click.option(
    "--data-dir",
    "data_dir",
    default=DATA_DIR,
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the cluster is.",
)


def refused(error: ClusterError) -> BadInput:
    """A cluster's error as a command line error."""
    return BadInput(error.message, hint=error.hint)


@click.command(epilog="Exit codes: 0 stopped, 64 bad input or cannot start, 70 a bug in Holdfast.")
@click.option("--brokers", type=click.IntRange(1, 99), help="How many.  [default: 3]")
@data_dir_option
@click.option("--ephemeral", is_flag=True, help="In a temporary directory, removed at the end.")
@click.option(
    "--log-dirs", type=click.IntRange(1, 16), help="Log directories of each broker.  [default: 1]"
)
@click.option("--zookeeper", metavar="HOST:PORT", help="Use ZooKeeper as the store, not a file.")
@click.option(
    "--config", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of every broker."
)
@click.option(
    "--trace", is_flag=True, default=None, help="Write traces, for 'holdfast lab replay'."
)
@click.pass_context
def up(
    ctx: click.Context,
    /,
    brokers: int | None,
    data_dir: Path,
    ephemeral: bool,
    log_dirs: int | None,
    zookeeper: str | None,
    settings: Sequence[str],
    trace: bool | None,
) -> None:
    """Start brokers, print their addresses, and stop them at Ctrl-C.

    The bootstrap address is the only line on stdout. An existing cluster starts again with its data
    and ports. While it runs, 'holdfast fault' injects faults.
    """
    if ephemeral and ctx.get_parameter_source("data_dir") is not click.core.ParameterSource.DEFAULT:
        raise BadInput("--ephemeral makes a directory of its own", hint="leave --data-dir out")
    stopper = Stopper()
    try:
        cluster = Cluster(
            None if ephemeral else data_dir,
            brokers=brokers,
            config=_parsed(settings),
            store=None if zookeeper is None else f"zookeeper:{zookeeper}",
            trace=trace,
            log_dirs=log_dirs,
            say=_say,
        )
        cluster.start()
    except ClusterError as error:
        raise refused(error) from None
    with ExitStack() as at_the_end:
        at_the_end.callback(cluster.close)
        at_the_end.callback(_say, "stopping")  # runs first; a closed terminal does no harm
        _run(cluster, stopper)


class Stopper:
    """Handles Ctrl-C, SIGTERM, and SIGHUP when the terminal closes.

    While the cluster runs, a signal stops it in a controlled way; while it starts or stops, a
    signal is an interrupt. An interrupt comes only once: nothing may stop the cleanup after it.
    """

    def __init__(self) -> None:
        self.is_running = False
        self.asked = threading.Event()
        self._is_interrupted = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                signal.signal(number, self._signalled)

    def _signalled(self, _: int, __: FrameType | None) -> None:
        if self.is_running:
            self.is_running = False
            self.asked.set()
        elif not self._is_interrupted:
            self._is_interrupted = True
            raise KeyboardInterrupt


def _run(cluster: Cluster, stopper: Stopper) -> None:
    server = serve_owner(cluster)
    try:
        # Before the line is printed: its reader may send a signal immediately.
        stopper.is_running = True
        click.echo(cluster.bootstrap)
        sys.stdout.flush()
        _say(f"data in {cluster.data_dir}; Ctrl-C stops")
        reported: dict[int, str] = {}
        while not stopper.asked.wait(LOOK_S):
            died = cluster.died()
            for broker, words in died.items():
                if broker not in reported:
                    _say(f"broker {broker} exited unexpectedly, {words}")
            reported = died
    finally:
        server.close()
        (cluster.data_dir / OWNER_SOCKET).unlink(missing_ok=True)


def _parsed(settings: Sequence[str]) -> dict[str, str]:
    config: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"--config {setting!r} is not NAME=VALUE")
        config[name.strip()] = value.strip()
    return config


def _say(text: str) -> None:
    click.echo(text, err=True)
