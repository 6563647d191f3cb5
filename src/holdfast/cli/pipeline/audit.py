"""`holdfast audit run`: was anything lost? The exit code answers; tables and pages show details."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from holdfast.cli.errors import BadInput, Failed
from holdfast.cli.extras import needs
from holdfast.cli.options import json_option
from holdfast.cli.pipeline.ingest import absolute
from holdfast.cli.pipeline.spark_options import errors_reported, spark_options, spark_session

CODES = (
    "Exit codes: 0 nothing is wrong; 1 nothing acknowledged is gone, but copies or readers "
    "contradict each other; 2 acknowledged records are lost; 3 duplicates or order only; "
    "4 cannot decide (says what is missing); 64 bad input; 70 a bug in Holdfast; 130 interrupted."
)


class Undecided(BadInput):
    """Spark failed during the audit: there is no verdict."""

    exit_code = 4


@contextmanager
def _undecided_if_spark_fails() -> Iterator[None]:
    """Also if Spark does not start, or its Java dies: exit code 1 is a verdict here."""
    try:
        yield
    except Failed as error:
        raise Undecided(error.message, hint=error.hint) from None


class Logs(click.ParamType[dict[str, Path]]):
    """b1=DIR,b2=DIR,…"""

    name = "b1=DIR,…"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Path]:
        logs: dict[str, Path] = {}
        for part in value.split(","):
            name, equals, folder = part.strip().partition("=")
            if not (name and equals and folder):
                self.fail(f"{part!r} is not NAME=DIR", param, ctx)
            if name in logs:
                self.fail(f"{name} is named twice", param, ctx)
            logs[name] = Path(folder).absolute()  # workers run elsewhere
        return logs


@click.group(epilog=CODES)
def audit() -> None:
    """Compare what brokers acknowledged to producers with every replica and reader."""


@audit.command("run", epilog=CODES)
@click.option(
    "--ledger",
    required=True,
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="The ledgers: the directory given to LedgerProducer.",
)
@click.option("--logs", required=True, type=Logs(), help="The log directory of every broker.")
@click.option("--table", metavar="PATH", help="A table that `holdfast ingest` fills.")
@click.option(
    "--trace",
    "traces",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Traces of brokers, or directories of them: for causes.",
)
@click.option(
    "--consumed",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Ledgers of consumers: the directory given to LedgerConsumer.",
)
@click.option(
    "--store",
    metavar="FILE|HOST:PORT",
    help="The coordination store of Holdfast's brokers: store.sqlite, or ZooKeeper."
    "  [default: the file beside the brokers' directories]",
)
@click.option(
    "-t", "--topic", "topics", multiple=True, help="Only this one.  [default: the ledger's]"
)
@click.option(
    "--min-insync",
    type=click.IntRange(1),
    help="min.insync.replicas of the topics.  [default: 2 with three copies or more, else 1]",
)
@json_option
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page.")
@click.option(
    "--findings",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every finding to this Parquet file.",
)
@spark_options
@click.pass_context
@needs("spark")
def run_command(
    ctx: click.Context,
    /,
    html: Path | None,
    findings: Path | None,
    as_json: bool,
    master: str | None,
    conf: Sequence[str],
    table: str | None,
    **asked: Any,
) -> None:
    """Name every lost, duplicated, reordered or contradicted record, with its evidence.

    Only the ledger says what is expected, so a lost tail counts as a loss.
    """
    for path in (html, findings):
        if path is not None and not path.absolute().parent.is_dir():
            raise BadInput(f"there is no directory {path.parent}", hint="make it first")
    from rich.console import Console

    from holdfast.cli.pipeline.audit_output import as_data, show
    from holdfast.pipeline.audit import AuditInputs, run

    inputs = AuditInputs(table=None if table is None else absolute(table), **asked)
    with errors_reported():
        inputs.check()
    with _undecided_if_spark_fails(), spark_session("holdfast audit", master, conf) as spark:
        done = run(spark, inputs)
    if findings is not None:
        import pyarrow.parquet as pq

        pq.write_table(done.records, findings)
    if html is not None:
        from holdfast.web.audit_page import page

        html.write_text(page(done), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(as_data(done), ensure_ascii=False))
    else:
        show(done, Console(highlight=False))
    ctx.exit(done.verdict.exit_code)
