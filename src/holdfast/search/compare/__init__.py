"""Compares in-sync replicas with a majority: the same faults at the same moments under both rules.

Every figure is measured in runs of the real core.
"""

from holdfast.search.compare.figures import (
    Comparison,
    Figures,
    Price,
    compare,
    data_survives,
    price,
)
from holdfast.search.compare.schedule import Contender, contenders

__all__ = [
    "Comparison",
    "Contender",
    "Figures",
    "Price",
    "compare",
    "contenders",
    "data_survives",
    "price",
]
