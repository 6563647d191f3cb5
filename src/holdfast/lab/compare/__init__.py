"""In-sync replicas or a majority: the same faults, at the same moments, under both rules.

Nothing is assumed about either rule: every figure is measured in runs of the real core.
"""

from holdfast.lab.compare.figures import Comparison, Figures, Price, compare, data_survives, price
from holdfast.lab.compare.schedule import Contender, contenders

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
