"""Shared by every command that uses Spark: its options, its session, its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.errors import BadInput, Failed, Unreachable

if TYPE_CHECKING:
    from holdfast.pipeline.spark.pool import SparkPool

F = TypeVar("F", bound=Callable[..., Any])


conf_option = click.option(
    "--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark's."
)


def spark_options(command: F) -> F:
    """--master and --conf, passed to Spark unchanged."""
    master = click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs: spark://HOST:PORT, yarn, k8s://…  [default: local[*]]",
    )
    return master(conf_option(command))


@contextmanager
def spark_session(app: str, master: str | None, conf: Sequence[str]) -> Iterator[Any]:
    """A SparkSession for the block; errors of the pipeline become one line."""
    from holdfast.pipeline.spark import running

    _keep_logging_off_the_terminal()
    with errors_reported(), running(app, master=master, conf=_parsed(conf), say=_say) as spark:
        yield spark


@contextmanager
def spark_pool(app: str, master: str | None, conf: Sequence[str]) -> Iterator[SparkPool | None]:
    """Spark's executors as a pool of processes; None without a master."""
    if master is None:
        if conf:
            raise BadInput("--conf is for Spark", hint="try --spark 'local[*]'")
        yield None
        return
    from holdfast.pipeline.spark.pool import executors

    _keep_logging_off_the_terminal()
    with errors_reported(), executors(app, master=master, conf=_parsed(conf), say=_say) as pool:
        yield pool


def _keep_logging_off_the_terminal() -> None:
    """Py4J logs whole tracebacks when Java ends; they belong in Spark's log."""
    import logging

    from holdfast.pipeline.spark.scratch import log_file

    logging.basicConfig(filename=log_file(), level=logging.WARNING)


def _say(text: str) -> None:
    click.echo(text, err=True)


@contextmanager
def errors_reported() -> Iterator[None]:
    """Turns the pipeline's errors into command line errors."""
    from holdfast.pipeline import NoBrokerError, PipelineError
    from holdfast.pipeline.spark.failures import StreamFailedError

    try:
        yield
    except StreamFailedError as error:
        raise Failed(error.message, hint=error.hint) from None
    except NoBrokerError as error:
        raise Unreachable(error.message, hint=error.hint) from None
    except PipelineError as error:
        raise BadInput(error.message, hint=error.hint) from None


def _parsed(conf: Sequence[str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for setting in conf:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip().startswith("spark."):
            raise BadInput(f"--conf {setting!r} is not spark.NAME=VALUE")
        settings[name.strip()] = value
    return settings
