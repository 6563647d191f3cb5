"""Small files beside the logs: offset and leader-epoch checkpoints, meta.properties."""
