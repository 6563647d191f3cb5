"""The whole broker in the lab: real broker code on a simulated loop, network, disk and store."""
