"""The settings of a broker and of a topic, under Kafka's names.

`load_file` reads a server.properties into `BrokerSettings`; `TopicConfigs` is what a topic has set
on top of its broker's `Layers`. The tables of all settings are text files in `definitions/`.
"""

from holdfast.broker.settings.config_changes import (
    Alteration,
    Operation,
    alter_broker,
    alter_cluster,
    alter_topic,
    check_topic_configs,
    replacing,
    usable,
)
from holdfast.broker.settings.config_descriptions import (
    DescribedConfig,
    Synonym,
    describe_broker,
    describe_cluster,
    describe_group,
    describe_topic,
)
from holdfast.broker.settings.definition_tables import BROKER, TOPIC, nearest_name
from holdfast.broker.settings.java_properties import PropertiesError, read_properties
from holdfast.broker.settings.layers import Found, Layers, Source
from holdfast.broker.settings.listeners import Endpoint
from holdfast.broker.settings.server_properties import (
    Loaded,
    Problem,
    SettingsError,
    load,
    load_file,
)
from holdfast.broker.settings.setting import Change, Kind, Setting, Value
from holdfast.broker.settings.topic_settings import (
    TopicConfigs,
    TopicSettings,
    flush_rule,
)
from holdfast.broker.settings.typed_settings import BrokerSettings

__all__ = [
    "BROKER",
    "TOPIC",
    "Alteration",
    "BrokerSettings",
    "Change",
    "DescribedConfig",
    "Endpoint",
    "Found",
    "Kind",
    "Layers",
    "Loaded",
    "Operation",
    "Problem",
    "PropertiesError",
    "Setting",
    "SettingsError",
    "Source",
    "Synonym",
    "TopicConfigs",
    "TopicSettings",
    "Value",
    "alter_broker",
    "alter_cluster",
    "alter_topic",
    "check_topic_configs",
    "describe_broker",
    "describe_cluster",
    "describe_group",
    "describe_topic",
    "flush_rule",
    "load",
    "load_file",
    "nearest_name",
    "read_properties",
    "replacing",
    "usable",
]
