"""The tables of `holdfast groups`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from holdfast.cli.tables import show

NUMBERS = ("partition", "committed", "end", "lag")
PARTITION = ("topic", *NUMBERS, "member")
MEMBER = ("member", "instance", "client", "host")


def show_descriptions(groups: Iterable[dict[str, Any]]) -> None:
    """A head, the partitions and the members of each group."""
    for number, group in enumerate(groups):
        if number:
            click.echo()
        members, partitions = group["members"], group["partitions"]
        lags = [one["lag"] for one in partitions if one["lag"] is not None]
        words = f"{group['state']}, {len(members)} member{'s' * (len(members) != 1)}"
        click.echo(f"{group['group']}: {words}, lag {sum(lags)}")
        if partitions:
            show(PARTITION, [[one[t] for t in PARTITION] for one in partitions], numbers=NUMBERS)
        if members:
            click.echo()
            show(MEMBER, [[one[title] for title in MEMBER] for one in members])
