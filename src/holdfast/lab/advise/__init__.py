"""What a combination of settings can lose: tried in the real core, never looked up.

The search visits every state with so many failures, the catalogue's stories are played under these
settings, and trials count what is survived.
"""

from holdfast.lab.advise.advising import Advice, Line, advise
from holdfast.lab.advise.asked import MOST_REPLICAS, Asked, AskedError, Given, asked_of
from holdfast.lab.advise.asking import ask_cluster
from holdfast.lab.advise.losses import Evidence, Loss, Searched
from holdfast.lab.advise.reading import FILES, of_consumer, of_logs, of_producer, read_file
from holdfast.lab.advise.safer import Remedy, told

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
    "told",
]
