"""`holdfast ingest`: topics into a Delta table, exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.cluster.up import Stopper
from holdfast.cli.exit_codes import INTERRUPTED
from holdfast.cli.extras import needs
from holdfast.cli.options import json_option
from holdfast.cli.pipeline.spark_options import errors_reported, spark_options, spark_session
from holdfast.cli.tables import show_json

if TYPE_CHECKING:
    from holdfast.pipeline.ingest import Summary


@click.command(
    epilog="Exit codes: 0 all is in the table, or a continuous ingest was asked to end; 1 the "
    "stream stopped (offsets vanished, Spark failed); 64 bad input; 69 no broker answers; "
    "70 a bug in Holdfast; 130 interrupted."
)
@click.option("-b", "--bootstrap", required=True, metavar="HOST:PORT,…", help="Brokers.")
@click.option(
    *("-t", "--topic"),
    required=True,
    metavar="T[,T2]|PATTERN",
    help="Names with commas; anything that is no topic name is a regular expression.",
)
@click.option("--table", required=True, metavar="PATH", help="The Delta table; created if needed.")
@click.option(
    "--once/--continuous",
    default=True,
    show_default=True,
    help="End when all records are in, or continue.",
)
@click.option(
    "--value-format", type=click.Choice(["raw", "json"]), default="raw", show_default=True
)
@click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="For json: a file with the fields, as 'carrier STRING, delay INT' or Spark's JSON.",
)
@click.option(
    "--on-data-loss",
    type=click.Choice(["stop", "continue"]),
    default="stop",
    show_default=True,
    help="When offsets vanished before they were read.",
)
@json_option
@spark_options
@click.pass_context
@needs("spark")
def ingest(
    ctx: click.Context,
    /,
    topic: str,
    table: str,
    on_data_loss: str,
    master: str | None,
    conf: Sequence[str],
    as_json: bool,
    **asked_for: Any,
) -> None:
    """Stream topics into a Delta table, each record once.

    After any end, also kill -9, start it again: it continues where it was. Values that do not match
    --schema go to PATH/_quarantine with the reason. The checkpoint is PATH/_checkpoint.
    """
    Stopper()  # until Spark runs, an end is an interrupt
    from holdfast.pipeline.ingest import Ingest, Topics, cluster_of
    from holdfast.pipeline.ingest import ingest as run
    from holdfast.pipeline.spark.progress import meter

    with errors_reported():
        asked = Ingest(
            topics=Topics.parsed(topic),
            table=absolute(table),
            stops_on_data_loss=on_data_loss == "stop",
            **asked_for,
        )
        cluster_of(asked.bootstrap, asked.topics)  # before Spark starts, which takes a while
    with spark_session("holdfast ingest", master, conf) as spark:
        stopper = Stopper()  # again: Spark's session takes Ctrl-C for itself
        stopper.is_running = True
        done = run(spark, asked, meter("ingest"), stopper.asked)
    if as_json:
        content = {"table": asked.table, "was_stopped": done.was_stopped}
        show_json("holdfast-ingest/1", {**content, **asdict(done.reading)})
    else:
        _print_summary(done, asked.table)
    if done.was_stopped and asked.once:
        ctx.exit(INTERRUPTED)


def absolute(table: str) -> str:
    """Spark resolves names without a scheme in its own file system; add the scheme."""
    return table if "://" in table else str(Path(table).absolute())


def _print_summary(done: Summary, table: str) -> None:
    ended = "stopped; start it again to continue" if done.was_stopped else "done"
    click.echo(f"{done.reading} ({ended}): {table}")
