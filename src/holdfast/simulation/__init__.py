"""The whole broker in the lab: real broker code on a simulated loop, network, disk and store.

One integer decides a run: which faults, when, every delay and all traffic. Time is virtual, so a
minute of a cluster's life takes a second or two.
"""

from holdfast.simulation.cluster import SimulatedCluster
from holdfast.simulation.plan import FAULTS, Plan
from holdfast.simulation.run import SimulatedRun, simulate

__all__ = ["FAULTS", "Plan", "SimulatedCluster", "SimulatedRun", "simulate"]
