"""`holdfast configs`: list, describe, set, delete."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.asking import CODES, connected, say
from holdfast.cli.errors import BadInput
from holdfast.cli.options import Asked, Command, cluster_options, json_option, settings_from
from holdfast.cli.tables import show, show_json

if TYPE_CHECKING:
    from holdfast.cluster.admin.connection import Connection

DEFAULT = "DEFAULT_CONFIG"
Named = tuple[str, str]
"""The kind and the name of a resource."""


def resource_options(command: Command) -> Callable[..., Any]:
    """Whose settings: exactly one of these, as the argument `resource`."""

    @functools.wraps(command)
    def with_resource(
        *args: Any, topic: str | None, broker: int | None, is_cluster: bool, **given: Any
    ) -> Any:
        return command(*args, resource=_resource(topic, broker, is_cluster), **given)

    decorated: Callable[..., Any] = with_resource
    for option in (
        click.option("--cluster", "is_cluster", is_flag=True, help="The default of all brokers."),
        click.option("--broker", type=click.IntRange(0), help="One broker."),
        click.option("-t", "--topic", metavar="TOPIC", help="One topic."),
    ):
        decorated = option(decorated)
    return decorated


@click.group(epilog=CODES)
def configs() -> None:
    """Settings of topics, of brokers, and the default of all brokers."""


@configs.command("list", epilog=CODES)
@resource_options
@cluster_options
@json_option
def list_command(
    resource: Named,
    asked: Asked,
    as_json: bool,
) -> None:
    """What is set, and where: everything that is not a default."""
    with connected(asked) as connection:
        rows = _rows(connection, resource)
    _show(resource, [row for row in rows if row["source"] != DEFAULT], as_json=as_json)


@configs.command(epilog=CODES)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@resource_options
@cluster_options
@json_option
def describe(
    names: Sequence[str],
    resource: Named,
    asked: Asked,
    as_json: bool,
) -> None:
    """Every setting, or the ones named: value, source, default."""
    with connected(asked) as connection:
        from holdfast.cluster.admin.errors import RefusedError

        rows = _rows(connection, resource)
        known = {row["name"] for row in rows}
        if unknown := [name for name in names if name not in known]:
            raise RefusedError(f"{_words(resource)} has no setting {', '.join(unknown)}")
    _show(resource, [row for row in rows if not names or row["name"] in names], as_json=as_json)


@configs.command("set", epilog=CODES)
@click.argument("settings", metavar="NAME=VALUE...", nargs=-1, required=True)
@resource_options
@cluster_options
@json_option
def set_command(
    settings: Sequence[str],
    resource: Named,
    asked: Asked,
    as_json: bool,
) -> None:
    """Change settings; all of them, or none if the cluster refuses one."""
    values = settings_from("set", settings)
    with connected(asked) as connection:
        _change(connection, resource, values, ())
    _done(resource, "set", list(values), as_json=as_json)


@configs.command(epilog=CODES)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@resource_options
@cluster_options
@json_option
def delete(
    names: Sequence[str],
    resource: Named,
    asked: Asked,
    as_json: bool,
) -> None:
    """Remove settings, so that their defaults hold again."""
    with connected(asked) as connection:
        _change(connection, resource, {}, names)
    _done(resource, "deleted", names, as_json=as_json)


def _resource(topic: str | None, broker: int | None, is_cluster: bool) -> Named:
    given = [(topic is not None), (broker is not None), is_cluster]
    if sum(given) != 1:
        raise BadInput("whose settings?", hint="name one of --topic, --broker and --cluster")
    if topic is not None:
        return "topic", topic
    return ("cluster", "") if is_cluster else ("broker", str(broker))


def _words(resource: Named) -> str:
    kind, name = resource
    return "the default of all brokers" if kind == "cluster" else f"{kind} {name}"


def _rows(connection: Connection, resource: Named) -> list[dict[str, Any]]:
    from holdfast.cluster.admin import cluster_default
    from holdfast.cluster.admin import configs as admin

    kind, name = resource
    if kind == "cluster":
        return cluster_default.describe(connection)
    return admin.describe(connection, kind, [name])[name]


def _change(
    connection: Connection, resource: Named, values: dict[str, str], deleted: Iterable[str]
) -> None:
    from holdfast.cluster.admin import cluster_default
    from holdfast.cluster.admin import configs as admin

    kind, name = resource
    if kind == "cluster":
        cluster_default.set_values(connection, values, deleted)
    else:
        admin.set_values(connection, kind, name, values, deleted)


def _show(resource: Named, rows: list[dict[str, Any]], *, as_json: bool) -> None:
    kind, name = resource
    if as_json:
        show_json("holdfast-configs/1", {"resource": kind, "name": name, "configs": rows})
        return
    shown = [
        (
            row["name"],
            "[hidden]" if row["is_sensitive"] and row["value"] is None else row["value"],
            row["source"],
            _default(row),
        )
        for row in rows
    ]
    show(("name", "value", "source", "default"), shown)


def _default(row: dict[str, Any]) -> str | None:
    name, value = row["default_name"], row["default"]
    return value if name in (None, row["name"]) else f"{value} ({name})"


def _done(resource: Named, words: str, names: Sequence[str], *, as_json: bool) -> None:
    kind, name = resource
    if as_json:
        change = {"resource": kind, "name": name, "result": words, "settings": list(names)}
        show_json("holdfast-config-change/1", change)
    say(f"{_words(resource)}: {words} {', '.join(names)}")
