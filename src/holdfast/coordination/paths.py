"""Paths in the coordination store: Kafka's own, and Holdfast's under /holdfast."""

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
CONFIG_CHANGES = "/config/changes"
DELETE_TOPICS = "/admin/delete_topics"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
BROKER_INCARNATIONS = "/holdfast/lives"
ALL_BROKERS = "<default>"
"""In place of a broker's id: the settings for all brokers."""

LASTING_PATHS = (
    "/cluster",
    BROKER_IDS,
    TOPICS,
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_INCARNATIONS,
)
"""Paths that must exist before the first broker of a cluster registers."""


def broker_id(broker: int) -> str:
    """A broker's registration: an ephemeral node."""
    return f"{BROKER_IDS}/{broker}"


def topic(name: str) -> str:
    """A topic's id and assignment."""
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    """The parent of a topic's partitions."""
    return f"{TOPICS}/{name}/partitions"


def partition(name: str, number: int) -> str:
    """The parent of a partition's state."""
    return f"{TOPICS}/{name}/partitions/{number}"


def partition_state(name: str, number: int) -> str:
    """A partition's leader, epochs and in-sync replicas."""
    return f"{TOPICS}/{name}/partitions/{number}/state"


def topic_config(name: str) -> str:
    """A topic's own settings."""
    return f"{TOPIC_CONFIGS}/{name}"


def broker_config(broker: int | str) -> str:
    """A broker's dynamic settings, or those for `ALL_BROKERS`."""
    return f"{BROKER_CONFIGS}/{broker}"


def broker_incarnation(broker: int) -> str:
    """A broker's last incarnation, and since which its logs are intact; outlives its session."""
    return f"{BROKER_INCARNATIONS}/{broker}"
