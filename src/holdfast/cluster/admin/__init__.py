"""Reads and changes a running cluster, Holdfast's or Apache Kafka's, through its APIs.

librdkafka's admin client does what it can; the small client asks for the rest. Functions return
dictionaries that a command can print as JSON.
"""
