"""The options that several commands have, so that one thing has one name everywhere.

| option | meaning |
|---|---|
| `-b`, `--bootstrap` | the brokers of a cluster |
| `--command-config` | a file with Kafka's client properties |
| `-t`, `--topic` | a topic |
| `--config` | a setting of Kafka's: of a broker or a topic |
| `--set` | a rule of the lab |
| `--data-dir` | a folder that Holdfast writes |
| `--json` | output for programs |
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from holdfast.cli.errors import BadInput

DATA_DIR: Final = "holdfast-data"

Command = TypeVar("Command", bound=Callable[..., Any])


class Asked(NamedTuple):
    """The cluster that a command asks."""

    bootstrap: str | None
    command_config: Path | None


bootstrap_option = click.option(
    "-b",
    "--bootstrap",
    metavar="HOST:PORT,…",
    help="Brokers of the cluster.  [required, unless a file names bootstrap.servers]",
)
command_config_option = click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
    help="A file with Kafka's client properties, for TLS and logins.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
data_dir_option = click.option(
    "--data-dir",
    default=DATA_DIR,
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the cluster is.",
)


class Renamed(click.Option):
    """An option that is also known by older names, which the help does not show."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        every, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


def cluster_options(command: Command) -> Callable[..., Any]:
    """The cluster to ask, as the argument `asked`."""

    @functools.wraps(command)
    def with_cluster(
        *args: Any, bootstrap: str | None, command_config: Path | None, **given: Any
    ) -> Any:
        return command(*args, asked=Asked(bootstrap, command_config), **given)

    return bootstrap_option(command_config_option(with_cluster))


def topic_option(*, required: bool, multiple: bool = False) -> Callable[[Command], Command]:
    """One topic, or several: `-t a -t b`."""
    name = "topics" if multiple else "topic"
    return click.option(
        *("-t", "--topic", name), metavar="TOPIC", required=required, multiple=multiple
    )


def settings_from(option: str, given: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE, as often as wanted. BadInput names the option."""
    settings: dict[str, str] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{option} {setting!r} is not NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings
