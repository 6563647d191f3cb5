"""In-sync replicas or a majority: the same faults, at the same moments, under both rules.

Nothing is assumed about either rule: every figure is measured in runs of the real core.
"""

from holdfast.lab.compare.figures import Comparison, Figures, compare
from holdfast.lab.compare.schedule import Contender, contenders

__all__ = ["Comparison", "Contender", "Figures", "compare", "contenders"]
