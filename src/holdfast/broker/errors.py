"""Errors that keep a broker from starting or continuing."""


class StartError(Exception):
    """One line: the problem, its place, and what to do."""


class DisksLostError(Exception):
    """All log directories have failed: one line, as above."""
