"""kafka-python, imported without its warning: it reads its schemas by a deprecated function."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.errors as kafka_errors
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
    from kafka.errors import KafkaError
    from kafka.protocol.admin import ElectionType

__all__ = [
    "ConfigResource",
    "ConfigResourceType",
    "ElectionType",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaError",
    "KafkaProducer",
    "NewTopic",
    "TopicPartition",
    "kafka_errors",
]
