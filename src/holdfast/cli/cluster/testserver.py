"""`holdfast testserver`: clusters for tests in any language."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading

import click

from holdfast.cli.errors import BadInput
from holdfast.cluster.testserver.server import LineServer, TestSession

STDIN = 0


@click.command(epilog="Exit codes: 0 stopped, 64 bad input, 70 a bug in Holdfast.")
@click.option(
    "--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="0: any free one."
)
@click.option("--until-stdin-closes", is_flag=True, help="Exit when stdin closes.")
def testserver(port: int, until_stdin_closes: bool) -> None:
    """Start, use and break clusters over a JSON socket on 127.0.0.1 (docs/testserver.md).

    The first line on stdout has the address: {"host": "127.0.0.1", "port": N}. SIGTERM ends it.
    """
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise BadInput(
            f"port {port} cannot be used: {error.strerror}", hint="leave --port out"
        ) from None
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    server = LineServer(listener, TestSession)
    click.echo(json.dumps({"host": "127.0.0.1", "port": listener.getsockname()[1]}))
    sys.stdout.flush()
    if until_stdin_closes:
        threading.Thread(target=_watch_input, args=(stop,), daemon=True).start()
    stop.wait()
    server.close()


def _watch_input(stop: threading.Event) -> None:
    """Exit when stdin closes, which happens when the parent process dies.

    This does not use sys.stdin: Python aborts if it exits while a thread holds that stream's lock.
    """
    with contextlib.suppress(OSError):
        while os.read(STDIN, 4096):
            pass
    stop.set()
