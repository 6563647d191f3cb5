"""Producer snapshots of a log, and the replay of its batches into the core's `ProducerStates`."""
