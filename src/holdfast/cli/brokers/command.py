"""`holdfast brokers`: the live brokers and their disks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from holdfast.cli.asking import CODES, connected
from holdfast.cli.options import Asked, cluster_options, json_option
from holdfast.cli.tables import Row, show, show_json, size


@click.group(epilog=CODES)
def brokers() -> None:
    """The live brokers of a cluster."""


@brokers.command("list", epilog=CODES)
@cluster_options
@json_option
def list_command(asked: Asked, as_json: bool) -> None:
    """Addresses, racks, the controller, and log directories with their sizes."""
    with connected(asked) as connection:
        from holdfast.cluster.admin.brokers import list_brokers

        rows = list_brokers(connection)
    if as_json:
        show_json("holdfast-brokers/1", {"brokers": rows})
        return
    numbers = ("leaders", "replicas", "size", "free")
    titles = ("broker", "address", "rack", *numbers[:2], "log directory", *numbers[2:])
    show(titles, _rows(rows), numbers=numbers)
    click.echo("* the controller")


def _rows(brokers: Iterable[dict[str, Any]]) -> Iterator[Row]:
    for broker in brokers:
        first: Row = (
            f"{broker['broker']}{' *' if broker['is_controller'] else ''}",
            *(broker[key] for key in ("address", "rack", "leaders", "replicas")),
        )
        for one in broker["log_dirs"] or [None]:
            if one is None:
                yield (*first, None, None, None)
            else:
                path = one["path"] if one["error"] is None else f"{one['path']} ({one['error']})"
                yield (*first, path, size(one["size"]), size(one["usable_bytes"]))
            first = ("",) * len(first)
