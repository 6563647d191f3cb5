"""`holdfast server`: one broker and its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from holdfast.broker.settings import (
    BROKER,
    TOPIC,
    BrokerSettings,
    DescribedConfig,
    Layers,
    Loaded,
    Setting,
    Source,
    TopicConfigs,
    describe_broker,
    describe_topic,
    load_file,
    nearest_name,
)
from holdfast.cli import exit_codes
from holdfast.cli.broker.log_output import show_rows
from holdfast.cli.errors import BadInput
from holdfast.cli.options import Renamed, json_option
from holdfast.cli.tables import show_json

CODES = "Exit codes: 0 good, 1 no log directory is left, 64 bad input, 70 a bug in Holdfast."

file_argument = click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
)
override_option = click.option(
    "--config", "overrides", multiple=True, metavar="NAME=VALUE", help="Overrides the file."
)


@click.group(epilog=CODES)
def server() -> None:
    """One broker: start it, check its server.properties, look up settings."""


@server.command("check", epilog=CODES)
@file_argument
@override_option
@json_option
@click.pass_context
def check_command(
    ctx: click.Context, file: Path, overrides: tuple[str, ...], as_json: bool
) -> None:
    """Every problem of a server.properties, one per line, without starting anything."""
    if as_json:
        loaded = _examined(file, overrides)
        errors, warnings = map(str, loaded.errors), map(str, loaded.warnings)
        content = {"file": str(file), "errors": [*errors], "warnings": [*warnings]}
        show_json("holdfast-server-check/1", content)
        ctx.exit(exit_codes.GOOD if loaded.settings is not None else exit_codes.BAD_INPUT)
    settings = _read(ctx, file, overrides)[0]
    click.echo(f"✓ {file}: {_summary(settings)}")


@server.command("start", epilog=CODES)
@file_argument
@override_option
@click.pass_context
def start_command(ctx: click.Context, file: Path, overrides: tuple[str, ...]) -> None:
    """Run one broker until Ctrl-C or SIGTERM."""
    from holdfast.broker.errors import DisksLostError, StartError
    from holdfast.broker.process import run

    layers = _read(ctx, file, overrides)[1]
    try:
        run(layers)
    except StartError as error:
        raise BadInput(str(error)) from None
    except DisksLostError as error:
        click.echo(f"holdfast: {error}", err=True)
        ctx.exit(exit_codes.FAILED)


def _read(
    ctx: click.Context, file: Path, overrides: tuple[str, ...]
) -> tuple[BrokerSettings, Layers]:
    """The broker's settings; exits with every problem, one per line, if there are any."""
    loaded = _examined(file, overrides)
    for problem in loaded.warnings:
        click.echo(f"warning: {problem}", err=True)
    for problem in loaded.errors:
        click.echo(f"holdfast: {problem}", err=True)
    if loaded.settings is None:
        ctx.exit(exit_codes.BAD_INPUT)
    return loaded.settings, loaded.layers


def _examined(file: Path, overrides: tuple[str, ...]) -> Loaded:
    from holdfast.broker.preflight import examined

    return examined(load_file(file, overrides))


def _summary(settings: BrokerSettings) -> str:
    directories = ", ".join(str(path) for path in settings.log_dirs)
    store = settings.store or f"ZooKeeper at {settings.zookeeper_connect}"
    return (
        f"broker {settings.node_id} listens on {settings.listener}, keeps its data in "
        f"{directories} and uses the store {store}"
    )


@server.command("config", epilog=CODES)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    *("--topics", "--topic", "of_topic"),
    cls=Renamed,
    is_flag=True,
    help="Settings of topics, not of brokers.",
)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
    help="A server.properties: show the effective values, and where each one comes from.",
)
@override_option
@json_option
def config_command(
    names: tuple[str, ...],
    of_topic: bool,
    file: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Every setting: its default, whether it acts here, what it means.

    NAME is a setting, or a pattern such as "log.*".
    """
    if overrides and file is None:
        raise BadInput("--config needs --file", hint="try 'holdfast server config --help'")
    settings = _chosen(TOPIC if of_topic else BROKER, names)
    if file is None:
        rows = [_known(setting) for setting in settings]
    else:
        rows = _holding(load_file(file, overrides), settings, of_topic=of_topic)
    if as_json:
        show_json("holdfast-server-config/1", {"settings": rows})
    else:
        show_rows(rows)


def _chosen(known: Mapping[str, Setting], names: Iterable[str]) -> list[Setting]:
    if not names:
        return [setting for setting in known.values() if setting.importance != "internal"]
    chosen: dict[str, Setting] = {}
    for name in names:
        found = {one: known[one] for one in known if fnmatchcase(one, name)}
        if not found:
            meant = nearest_name(name, known)
            raise BadInput(f"no setting '{name}'", hint=f"did you mean {meant}?" if meant else None)
        chosen.update(found)
    return list(chosen.values())


def _known(setting: Setting) -> dict[str, Any]:
    return {
        "name": setting.name,
        "type": setting.kind.word,
        "default": setting.default,
        "allowed": setting.allowed.text,
        "change": setting.change.value,
        "acts": setting.acts,
        "meaning": setting.meaning,
    }


def _holding(loaded: Loaded, settings: list[Setting], *, of_topic: bool) -> list[dict[str, Any]]:
    if loaded.errors:
        count = len(loaded.errors)
        raise BadInput(
            f"{loaded.errors[0]}" + (f" (and {count - 1} more)" if count > 1 else ""),
            hint="try 'holdfast server check'",
        )
    names = [setting.name for setting in settings]
    acts = {setting.name: setting.acts for setting in settings}
    return [
        {
            "name": row.name,
            "value": "[hidden]" if row.is_sensitive and not row.is_default else row.value,
            "from": _origin(row, loaded),
            "acts": acts[row.name],
            "meaning": row.documentation,
        }
        for row in _described(loaded.layers, names, of_topic=of_topic)
    ]


def _described(layers: Layers, names: list[str], *, of_topic: bool) -> list[DescribedConfig]:
    if of_topic:
        return describe_topic(TopicConfigs(layers=layers), names)
    return describe_broker(layers, names)


def _origin(row: DescribedConfig, loaded: Loaded) -> str:
    if row.source is Source.STATIC_BROKER_CONFIG:
        given = row.synonyms[0].name
        return loaded.where[given] + ("" if given == row.name else f" ({given})")
    return "default"
