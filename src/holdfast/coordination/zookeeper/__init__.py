"""The coordination store in ZooKeeper."""
