"""Advises on a combination of settings: what it can lose, tried in the real core.

The search visits every state with so many failures, the scenarios of the catalogue run under these
settings, and trials measure which failures are survived.
"""

from holdfast.search.advise.advice import Advice, Line, advise
from holdfast.search.advise.combination import MOST_REPLICAS, Asked, AskedError, Given, asked_of
from holdfast.search.advise.losses import Searched
from holdfast.search.advise.running_cluster import ask_cluster
from holdfast.search.advise.safer import setting_text
from holdfast.search.advise.settings_files import of_consumer, of_logs, of_producer, read_file

__all__ = [
    "MOST_REPLICAS",
    "Advice",
    "Asked",
    "AskedError",
    "Given",
    "Line",
    "Searched",
    "advise",
    "ask_cluster",
    "asked_of",
    "of_consumer",
    "of_logs",
    "of_producer",
    "read_file",
    "setting_text",
]
