"""A click group whose sub-commands are imported only when they run.

The table gives each command's name, module and help line, so `holdfast --help` is printed without
importing any of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.errors import Escaped, OutputClosed, exit_code_of, output_is_closed
from holdfast.cli.output import prepare

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class LazyCommand:
    target: str
    """Where the command is defined: "module:attribute"."""
    help: str
    """The line in the group's list of commands."""

    def load(self) -> click.Command:
        from importlib import import_module  # not needed for --help

        module, attribute = self.target.split(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command), f"{self.target} is not a click command"
        return command


class LazyGroup(click.Group):
    """Holds lazy and ordinary commands, and exits with Holdfast's exit codes."""

    def __init__(self, *args: Any, lazy: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = dict(lazy)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Lazy commands in the table's order, which is the order of use."""
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._lazy.get(cmd_name)
        return entry.load() if entry is not None else super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            # click looks for similar names only among commands it has loaded.
            names = self.list_commands(ctx)
            raise click.NoSuchCommand(error.command_name, possibilities=names, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx  # click's signature; the table already knows all it needs
        rows = [(name, entry.help) for name, entry in self._lazy.items()]
        rows += [
            (name, command.get_short_help_str(formatter.width))
            for name, command in sorted(self.commands.items())
            if not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names and help from the table: a Tab imports no command."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=entry.help)
            for name, entry in self._lazy.items()
            if name.startswith(incomplete)
        ]
        return found or super().shell_complete(ctx, incomplete)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _nothing_is_swallowed():  # --help and --version print in here
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _nothing_is_swallowed():
            return super().invoke(ctx)

    def main(  # type: ignore[override]  # click declares one overload per standalone_mode
        self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run as a program: never returns, always exits with one of Holdfast's codes."""

        def run() -> Any:
            return super(LazyGroup, self).main(args, standalone_mode=False, **extra)

        if not standalone_mode:
            return run()
        prepare()
        return sys.exit(exit_code_of(run))


@contextmanager
def _nothing_is_swallowed() -> Iterator[None]:
    """Handle broken pipes and EOFErrors here, before click guesses what they mean."""
    try:
        yield
    except (BrokenPipeError, EOFError) as error:
        if isinstance(error, BrokenPipeError) and output_is_closed():
            raise OutputClosed from None
        raise Escaped from error
