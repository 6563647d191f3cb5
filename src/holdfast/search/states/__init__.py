"""The states of the searched cluster, and the real components that they represent."""
