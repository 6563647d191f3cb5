"""Formats times for people, in UTC. Times come from outside, so they may be any number."""

from __future__ import annotations

from datetime import UTC, datetime


def clock(second: float, form: str = "%H:%M:%S") -> str:
    """A time of day; the bare number if it is out of the calendar's range."""
    try:
        return datetime.fromtimestamp(second, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return f"{second:g} s"
