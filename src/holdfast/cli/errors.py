"""How a command ends: its exit code, and the one line that the user reads.

The kinds of errors are never mixed. Bad input is the caller's fault (64): also a path that may not
be read or written, and a package that is not installed. A cluster that does not answer (69) and a
machine that cannot continue, such as one with a full disk (74), are failures of their own. An
interrupt is no one's fault (130). Any other exception that escapes a command is a bug in Holdfast
(70) and leaves a report file. `exit_codes` has the table.

A verdict of a check (1 to 4) is a result and not an error; a command returns it with
`ctx.exit(code)`.
"""

import errno
import sys
from collections.abc import Callable
from typing import IO, Any

import click

from holdfast.cli import exit_codes


class BadInput(click.ClickException):
    """The request cannot be carried out; `hint` ("try …") says what to do."""

    exit_code = exit_codes.BAD_INPUT

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        _say(self.message, self.hint, file)


class Failed(BadInput):
    """The command began and could not finish, through no fault of the caller."""

    exit_code = exit_codes.FAILED


class Unreachable(BadInput):
    """No broker of the cluster answers."""

    exit_code = exit_codes.UNREACHABLE


class OutputClosed(click.ClickException):
    """The reader of our output left early, as `| head` does. Not an error, so it is silent."""

    exit_code = exit_codes.OUTPUT_CLOSED

    def __init__(self) -> None:
        super().__init__("output closed")

    def show(self, file: IO[Any] | None = None) -> None:
        pass


class Escaped(Exception):  # noqa: N818  # an envelope, not an error of its own
    """Carries the error that caused it past click.

    click takes every EOFError for Ctrl-D and every broken pipe for `| head`, and exits silently.
    From a socket they are bugs (asyncio.IncompleteReadError is an EOFError).
    """


def exit_code_of(run: Callable[[], object]) -> int:
    """Call `run`, print an error line if it fails, and return the exit code.

    `run` may return an exit code; any other value counts as success. `SystemExit` passes through.
    """
    try:
        result = run()
        if sys.stdout is not None:  # None when started with a closed stdout
            sys.stdout.flush()  # a closed pipe must show here, not in the interpreter's shutdown
    except Escaped as envelope:
        assert isinstance(envelope.__cause__, Exception)
        return _report_bug(envelope.__cause__)
    except click.ClickException as error:
        return _report_click(error)
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted")
        return exit_codes.INTERRUPTED
    except Exception as error:  # noqa: BLE001  # the last line of defence: every bug gets a report
        return _report_escaped(error)
    return result if type(result) is int else 0  # a bool is a result, not an exit code


_OF_A_PATH = (
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EROFS,
)
"""Errors of a path: another path or other permissions would help."""
_OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def _report_escaped(error: Exception) -> int:
    """An unexpected exception: the caller's fault, the machine's, or a bug in Holdfast."""
    if isinstance(error, BrokenPipeError) and output_is_closed():
        return _report_click(OutputClosed())
    if isinstance(error, ModuleNotFoundError):
        from holdfast.cli.extras import of_missing

        if said := of_missing(error):
            _say(said[0], said[1])
            return exit_codes.BAD_INPUT
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        if error.errno in _OF_THE_MACHINE:
            _say(f"{where}{error.strerror}")
            return exit_codes.MACHINE
        if (error.errno in _OF_A_PATH and where) or _is_named_and_missing(error):
            _say(f"{where}{error.strerror}", "name another path, or look at its permissions")
            return exit_codes.BAD_INPUT
    return _report_bug(error)


def _is_named_and_missing(error: OSError) -> bool:
    """Whether a missing file is one that the caller named, or below one."""
    import os  # only needed on this rare path

    if not isinstance(error, FileNotFoundError) or not isinstance(error.filename, str):
        return False
    wanted = os.path.join(os.path.abspath(error.filename), "")  # noqa: PTH100, PTH118  # as text
    values = [word.rpartition("=")[2] for word in sys.argv[1:]]
    named = [os.path.abspath(one) for one in values if one.strip("./")]  # noqa: PTH100
    return any(wanted.startswith(os.path.join(one, "")) for one in named)  # noqa: PTH118


def output_is_closed() -> bool:
    """Whether the reader of stdout or stderr has left.

    A BrokenPipeError alone is no proof: it may come from a socket, and that is a bug to report.
    """
    import select  # only needed on this rare path

    if not hasattr(select, "poll"):  # Windows has no way to ask, so trust the exception
        return True
    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))


def _report_click(error: click.ClickException) -> int:
    match error:
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return exit_codes.BAD_INPUT
        case click.UsageError():
            hint = f"try '{error.ctx.command_path} --help'" if error.ctx else None
            _say(error.format_message(), hint)
            return exit_codes.BAD_INPUT
        case click.FileError():
            _say(error.format_message())
            return exit_codes.BAD_INPUT
        case OutputClosed():
            _silence_output()
        case _:
            error.show()
    return error.exit_code


def _report_bug(error: Exception) -> int:
    summary = _one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
    try:
        path = _write_report(error)
    except OSError as no_report:
        import traceback  # only needed on this rare path

        traceback.print_exception(error)
        _say(f"a bug in Holdfast: {summary} (no report file: {no_report})")
    else:
        _say(f"a bug in Holdfast: {summary} (report: {path})")
    return exit_codes.OWN_BUG


def _write_report(error: Exception) -> str:
    # Imported late: `holdfast --help` should not pay for a report that it does not write.
    import os
    import platform
    import tempfile
    import traceback

    from holdfast import __version__

    descriptor, path = tempfile.mkstemp(prefix="holdfast-bug-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8") as report:
        report.write(f"holdfast {__version__}, Python {platform.python_version()}, ")
        report.write(f"{platform.platform()}\n")
        report.write(f"command: {sys.argv!r}\n\n")
        traceback.print_exception(error, file=report)
    return path


def _silence_output() -> None:
    """Redirect the closed streams to nowhere, so that the interpreter's last flush cannot fail."""
    import os  # only needed on this rare path

    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _say(message: str, hint: str | None = None, file: IO[Any] | None = None) -> None:
    line = f"holdfast: {_one_line(message).removesuffix('.')}"
    if hint is not None:
        line += f" ({hint})"
    click.echo(line, file=file, err=file is None)


def _one_line(text: str) -> str:
    return " ".join(text.split())
