"""The replicas of this broker: partitions, replica fetchers, ISR proposals, failed logs."""
