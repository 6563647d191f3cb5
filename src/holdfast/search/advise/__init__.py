"""What a combination of settings can lose: tried in the real core, never looked up.

The search visits every state with so many failures, the catalogue's stories are played under these
settings, and trials count what is survived.
"""

from holdfast.search.advise.advice import Advice, Line, advise
from holdfast.search.advise.combination import MOST_REPLICAS, Asked, AskedError, Given, asked_of
from holdfast.search.advise.losses import Evidence, Loss, Searched
from holdfast.search.advise.running_cluster import ask_cluster
from holdfast.search.advise.safer import Remedy, setting_text
from holdfast.search.advise.settings_files import (
    FILES,
    of_consumer,
    of_logs,
    of_producer,
    read_file,
)

__all__ = [
    "FILES",
    "MOST_REPLICAS",
    "Advice",
    "Asked",
    "AskedError",
    "Evidence",
    "Given",
    "Line",
    "Loss",
    "Remedy",
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
