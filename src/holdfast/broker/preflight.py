"""Finds reasons why a broker cannot start, from its settings and this machine.

`holdfast server check` and `holdfast server start` both use it, so that they accept and refuse the
same settings with the same words. It changes nothing. Only a start can find the rest: a port or a
directory that another process holds, and a coordination store that does not answer or belongs to
another cluster.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from holdfast.broker.errors import StartError
from holdfast.broker.membership.log_dir_owners import check_together, read_owner
from holdfast.broker.network.host_names import canonical_name
from holdfast.broker.settings import BrokerSettings, Loaded, Problem
from holdfast.coordination import StoreError, check_embedded, check_zookeeper
from holdfast.model import TopicPartition
from holdfast.storage import DuplicateLogError, NoLogDirectoryError, RealDisk
from holdfast.storage.checkpoints.meta_properties import MetaProperties
from holdfast.storage.inspect.log_listing import is_unused, partitions_on
from holdfast.storage.log_directories import reason


class Finding(NamedTuple):
    """A problem of a path or address in a setting."""

    setting: str
    text: str
    is_error: bool = True


def examined(loaded: Loaded) -> Loaded:
    """The same settings, with the problems of their paths and addresses."""
    if loaded.settings is None:
        return loaded
    errors, warnings = [*loaded.errors], [*loaded.warnings]
    for setting, text, is_error in findings(loaded.settings):
        where = loaded.where.get(setting, loaded.title)
        (errors if is_error else warnings).append(Problem(where, f"{setting}: {text}"))
    settings = None if errors else loaded.settings
    return replace(loaded, settings=settings, errors=tuple(errors), warnings=tuple(warnings))


def findings(settings: BrokerSettings) -> Iterator[Finding]:
    """All findings."""
    yield from _listeners(settings)
    yield from _log_directories(settings)
    yield from _files(settings)
    try:
        if settings.store is None:
            check_zookeeper(settings.zookeeper_connect or "")
        elif not _will_exist(settings.store.parent, settings) or settings.store.exists():
            check_embedded(settings.store)
    except StoreError as error:
        name = "holdfast.store" if settings.store is not None else "zookeeper.connect"
        yield Finding(name, str(error))


# Addresses.


def _listeners(settings: BrokerSettings) -> Iterator[Finding]:
    host, port = settings.listener
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            with socket.socket(family, kind, protocol) as tried:
                tried.bind((address[0], 0, *address[2:]))
    except OSError as error:
        text = f"cannot listen on {host}:{port} ({reason(error)}): name an address of this machine"
        yield Finding("listeners", text)
    if not settings.advertised_listener.host:
        try:
            canonical_name()
        except StartError as error:
            yield Finding("advertised.listeners", str(error))


# Directories.


def _log_directories(settings: BrokerSettings) -> Iterator[Finding]:
    offline: dict[str, OSError] = {}
    seen: dict[Path, Path] = {}
    usable: dict[str, RealDisk] = {}
    for path in settings.log_dirs:
        other = seen.setdefault(path.resolve(), path)
        if other is not path:
            yield Finding("log.dirs", f"{path} and {other} are the same directory")
        error = _unusable(path)
        if error is not None:
            offline[str(path)] = error
        elif path.exists():
            usable[str(path)] = RealDisk(path, read_only=True)
    if len(offline) == len(settings.log_dirs):
        yield Finding("log.dirs", str(NoLogDirectoryError(offline)))
    else:
        for name, error in offline.items():
            text = f"{name}: {reason(error)}; this directory is offline"
            yield Finding("log.dirs", text, is_error=False)
    yield from _owners(usable, settings.node_id)
    yield from _duplicates(usable)


def _unusable(path: Path) -> OSError | None:
    """Why a directory can neither be used nor be created; None if it can."""
    there = next(one for one in (path, *path.absolute().parents) if one.exists())
    if not there.is_dir():
        return OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        return OSError(errno.EACCES, os.strerror(errno.EACCES))
    if there != path:
        try:  # Some file systems accept no directories, whatever their permissions.
            with TemporaryDirectory(prefix="holdfast-", suffix=".check", dir=there):
                pass
        except OSError as error:
            return error
    return None


def _owners(disks: dict[str, RealDisk], broker: int) -> Iterator[Finding]:
    owners: dict[str, MetaProperties] = {}
    try:
        for path, disk in disks.items():
            meta = read_owner(path, disk, broker)
            if meta is not None:
                owners[path] = meta
        check_together(owners)
    except StartError as error:
        yield Finding("log.dirs", str(error))
    except OSError:
        return  # The start finds the directory offline.


def _duplicates(disks: dict[str, RealDisk]) -> Iterator[Finding]:
    found: dict[TopicPartition, str] = {}
    for path, disk in disks.items():
        for partition, name in partitions_on(disk).items():
            other = found.setdefault(partition, path)
            if other != path and not (is_unused(disk, name) or is_unused(disks[other], name)):
                yield Finding("log.dirs", str(DuplicateLogError(partition, other, path)))


# Files.


def _files(settings: BrokerSettings) -> Iterator[Finding]:
    for name, path in (("holdfast.trace", settings.trace), ("holdfast.control", settings.control)):
        if path is None:
            continue
        if path.is_dir():
            yield Finding(name, f"{path} is a directory")
        elif not _will_exist(path.parent, settings):
            yield Finding(name, f"no directory {path.parent}: create it, or correct the path")
        elif path.parent.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
            yield Finding(name, f"nothing can be written in {path.parent}")


def _will_exist(folder: Path, settings: BrokerSettings) -> bool:
    """Whether a folder exists, or is created together with the log directories."""
    made = (one.absolute().parents for one in settings.log_dirs if _unusable(one) is None)
    return folder.is_dir() or any(folder.absolute() in parents for parents in made)
