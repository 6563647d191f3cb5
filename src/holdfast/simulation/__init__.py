"""Runs real broker code on a simulated event loop, network, disk and store.

One integer, the seed, decides a run: the faults and their times, every delay, all traffic. Time is
virtual, so a simulated minute takes a second or two.
"""

from holdfast.simulation.cluster import SimulatedCluster
from holdfast.simulation.plan import FAULTS
from holdfast.simulation.run import SimulatedRun, simulate

__all__ = ["FAULTS", "SimulatedCluster", "SimulatedRun", "simulate"]
