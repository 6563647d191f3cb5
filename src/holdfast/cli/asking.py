"""How a command reaches a cluster, and how it says what went wrong there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from holdfast.cli import exit_codes
from holdfast.cli.errors import BadInput, Failed, Unreachable
from holdfast.cli.options import Asked

if TYPE_CHECKING:
    from holdfast.cluster.admin.connection import Connection

CODES: Final = exit_codes.codes(
    {
        exit_codes.GOOD: "good",
        exit_codes.FAILED: "the cluster refused the request",
        exit_codes.UNREACHABLE: "no broker answers",
    }
)


@contextmanager
def connected(asked: Asked, properties: Mapping[str, str] | None = None) -> Iterator[Connection]:
    """A cluster that answered; errors become lines and exit codes."""
    from holdfast.cluster.admin.connection import Connection, config_from
    from holdfast.cluster.admin.errors import RefusedError
    from holdfast.cluster.client.client import KafkaError, UnreachableError
    from holdfast.cluster.errors import ClusterError

    try:
        config = config_from(asked.bootstrap, asked.command_config, properties or {})
        yield Connection(config, say)
    except UnreachableError as error:
        hint = error.hint or "is the cluster running? 'holdfast up' starts one here"
        raise Unreachable(error.message, hint=hint) from None
    except (RefusedError, KafkaError) as error:
        raise Failed(error.message, hint=error.hint) from None
    except ClusterError as error:
        raise BadInput(error.message, hint=error.hint) from None


def say(text: str) -> None:
    """One line for the person, beside the output."""
    click.echo(text, err=True)
