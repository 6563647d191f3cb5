"""Errors of decoding and encoding a message. Each names the field or position."""

from __future__ import annotations


class MalformedMessage(Exception):  # noqa: N818 - the issue, the docs and the metrics use this name
    """Malformed bytes: a peer's mistake, never ours, so it must be caught.

    Decoding raises nothing else, whatever the bytes: a broker closes the connection and continues.
    """

    def __init__(self, api: str, version: int, field: str, position: int, reason: str) -> None:
        self.api = api
        self.version = version
        self.field = field
        """The path to the field at fault, such as `topics[2].partitions[0].records`."""
        self.position = position
        """Where the field begins, counted from the start of the buffer that was read."""
        self.reason = reason
        super().__init__(f"{api} v{version}: {field} at byte {position}: {reason}")

    def __reduce__(self) -> tuple[type[MalformedMessage], tuple[str, int, str, int, str]]:
        """An exception with five arguments would not survive a trip to a worker process."""
        return type(self), (self.api, self.version, self.field, self.position, self.reason)


class UnsupportedVersionError(Exception):
    """This version of the API, or the API itself, is not defined."""

    def __init__(self, api: str, version: int) -> None:
        self.api = api
        self.version = version
        super().__init__(f"{api} has no version {version}")


class UnsupportedFieldError(ValueError):
    """A field holds a value that this version cannot carry, and dropping it changes the meaning.

    Fields marked `ignorable` are dropped silently instead.
    """
