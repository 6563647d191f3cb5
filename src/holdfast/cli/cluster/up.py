"""`holdfast up`: a cluster on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click

from holdfast.cli import exit_codes
from holdfast.cli.asking import say
from holdfast.cli.cluster import background, pid_file
from holdfast.cli.errors import BadInput
from holdfast.cli.extras import require
from holdfast.cli.options import DATA_DIR, data_dir_option, json_option, settings_from
from holdfast.cli.tables import show_json
from holdfast.cluster import Cluster, ClusterError
from holdfast.cluster.processes.ports import are_free
from holdfast.cluster.testserver.server import OWNER_SOCKET, serve_owner

FIRST_PORT: Final = 9092
LOOK_S: Final = 0.5


def refused(error: ClusterError) -> BadInput:
    """A cluster's error as a command line error."""
    return BadInput(error.message, hint=error.hint)


@click.command(
    epilog=exit_codes.codes({exit_codes.GOOD: "stopped, or running with --detach"}),
)
@click.option("--brokers", type=click.IntRange(1, 99), help="How many.  [default: 3]")
@click.option(
    "--port",
    type=click.IntRange(0, 65_000),
    help="The first broker's port, the others follow; 0 means any free ones.  "
    "[default: 9092, or any if one is in use]",
)
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
@click.option("--console", is_flag=True, help="Serve the console, a web page; implies --trace.")
@click.option("--detach", is_flag=True, help="In the background, until 'holdfast down'.")
@json_option
@click.pass_context
def up(
    ctx: click.Context,
    /,
    brokers: int | None,
    port: int | None,
    data_dir: Path,
    settings: Sequence[str],
    as_json: bool,
    **given: Any,
) -> None:
    """Start brokers, print their addresses, and stop them at Ctrl-C or 'holdfast down'.

    The bootstrap address is the only line on stdout. An existing cluster starts again with its data
    and ports. While it runs, 'holdfast fault' injects faults.
    """
    is_ephemeral, is_detached = given["ephemeral"], given["detach"]
    named = ctx.get_parameter_source("data_dir") is not click.core.ParameterSource.DEFAULT
    if is_ephemeral and named:
        raise BadInput("--ephemeral makes a directory of its own", hint="leave --data-dir out")
    zookeeper = given["zookeeper"]
    if zookeeper is not None:
        require("zookeeper")
    if given["console"]:
        require("web")
    config = settings_from("--config", settings)
    if is_detached:
        background.fork()
    stopper = Stopper()
    try:
        cluster = Cluster(
            None if is_ephemeral else data_dir,
            brokers=brokers,
            config=config,
            store=None if zookeeper is None else f"zookeeper:{zookeeper}",
            trace=given["trace"] or given["console"] or None,
            metrics=True,
            log_dirs=given["log_dirs"],
            say=say,
        )
        _choose_ports(cluster, port)
        cluster.start()
    except ClusterError as error:
        raise refused(error) from None
    with ExitStack() as at_the_end:
        at_the_end.callback(cluster.close)
        at_the_end.callback(say, "stopping")  # runs first; a closed terminal does no harm
        with_console = at_the_end if given["console"] else None
        _run(cluster, stopper, with_console, as_json=as_json, is_detached=is_detached)


def _choose_ports(cluster: Cluster, asked: int | None) -> None:
    """An existing cluster keeps its ports. Without a choice, the system chooses."""
    if asked:
        cluster.listen_from(asked)
    if asked is not None or any(cluster.entry(broker).port for broker in cluster.brokers):
        return
    last = FIRST_PORT + len(cluster.brokers) - 1
    if are_free(FIRST_PORT, len(cluster.brokers)):
        cluster.listen_from(FIRST_PORT)
    else:
        used = f"{FIRST_PORT} is" if last == FIRST_PORT else f"one of {FIRST_PORT} to {last} is"
        say(f"port {used} in use: the brokers listen on other ports")


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


def _run(
    cluster: Cluster,
    stopper: Stopper,
    with_console: ExitStack | None,
    *,
    as_json: bool,
    is_detached: bool,
) -> None:
    server = serve_owner(cluster)
    pid_file.write(cluster.data_dir, os.getpid())
    try:
        if with_console is not None:
            _serve_console(cluster, with_console)
        # Before the line is printed: its reader may send a signal immediately.
        stopper.is_running = True
        _show(cluster, as_json=as_json)
        if is_detached:
            say(f"data in {cluster.data_dir}; 'holdfast down{_named(cluster.data_dir)}' stops")
            background.leave_terminal(cluster.data_dir)
        else:
            say(f"data in {cluster.data_dir}; Ctrl-C stops")
        reported: dict[int, str] = {}
        while not stopper.asked.wait(LOOK_S):
            died = cluster.died()
            for broker, words in died.items():
                if broker not in reported:
                    say(f"broker {broker} exited unexpectedly, {words}")
            reported = died
    finally:
        server.close()
        pid_file.remove(cluster.data_dir)
        (cluster.data_dir / OWNER_SOCKET).unlink(missing_ok=True)


def _serve_console(cluster: Cluster, at_the_end: ExitStack) -> None:
    from holdfast.web.console import Console  # needs the extra "web"

    console = Console(folder=cluster.data_dir)
    at_the_end.callback(console.close)
    console.start()
    say(f"console: {console.url}")


def _named(data_dir: Path) -> str:
    return "" if data_dir == Path(DATA_DIR).absolute() else f" --data-dir {data_dir}"


def _show(cluster: Cluster, *, as_json: bool) -> None:
    if as_json:
        folder, pid = str(cluster.data_dir), os.getpid()
        content = {"bootstrap": cluster.bootstrap, "data_dir": folder, "pid": pid}
        show_json("holdfast-up/1", content)
    else:
        click.echo(cluster.bootstrap)
    sys.stdout.flush()
