"""Errors that keep a broker from starting or continuing."""


class StartError(Exception):
    """One line: what is wrong, where, and what to do."""


class DisksLostError(Exception):
    """All log directories have failed: one line, as above."""
