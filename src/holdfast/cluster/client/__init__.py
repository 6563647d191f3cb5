"""A small blocking Kafka client, and the records that its producers were acknowledged."""
