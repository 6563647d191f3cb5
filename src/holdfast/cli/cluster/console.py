"""`holdfast console`: a web page of a living cluster."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli.cluster.up import Stopper, refused
from holdfast.cli.errors import BadInput
from holdfast.cli.extras import needs
from holdfast.cli.options import data_dir_option
from holdfast.cluster import ClusterError


@click.command(
    epilog="Exit codes: 0 stopped, 64 bad input or no such cluster, 70 a bug in Holdfast."
)
@click.option("-b", "--bootstrap", metavar="HOST:PORT,…", help="Any cluster, also Apache Kafka.")
@data_dir_option
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="On loopback.  [default: a free one]"
)
@click.option(
    "--reports",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="List the pages of 'holdfast audit run --html' in this folder.",
)
@needs("web")
def console(bootstrap: str | None, data_dir: Path, port: int, reports: Path | None) -> None:
    """Serve a page that shows a cluster while it runs, on this machine only.

    Without -b it is the cluster of 'holdfast up' in --data-dir, which the page can also break. The
    address on stdout has the token that this needs.
    """
    from holdfast.web.console import Console, ConsoleError  # needs the extra

    stopper = Stopper()
    folder = None if bootstrap else data_dir.absolute()
    try:
        server = Console(bootstrap=bootstrap or "", folder=folder, port=port, reports=reports)
    except ClusterError as error:
        raise refused(error) from None
    except ConsoleError as error:
        raise BadInput(str(error), hint="choose another --port") from None
    server.start()
    try:
        stopper.is_running = True
        click.echo(server.url)
        click.echo("Ctrl-C stops", err=True)
        stopper.asked.wait()
    finally:
        server.close()
