"""Times as people read them, all in UTC. They come from outside, so they may be any number."""

from __future__ import annotations

from datetime import UTC, datetime


def clock(second: float, form: str = "%H:%M:%S") -> str:
    """A time of day; the bare number if it is no time that a calendar knows."""
    try:
        return datetime.fromtimestamp(second, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return f"{second:g} s"
