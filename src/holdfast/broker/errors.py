"""What keeps a broker from starting."""


class StartError(Exception):
    """One line: what is wrong, where, and what to do."""
