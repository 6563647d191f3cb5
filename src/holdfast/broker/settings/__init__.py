"""A broker's and a topic's settings, by Kafka's names: what is known, what is given, what holds.

`load_file` reads a server.properties into `BrokerSettings`; `TopicConfigs` is what a topic has set
on top of its broker's `Layers`. The tables of all settings are text files in `tables/`.
"""

from holdfast.broker.settings.altering import (
    Alteration,
    ConfigRefusedError,
    Operation,
    alter_broker,
    alter_cluster,
    alter_topic,
    check_topic_configs,
    replacing,
    usable,
)
from holdfast.broker.settings.broker_settings import BrokerSettings
from holdfast.broker.settings.describing import (
    Described,
    Synonym,
    describe_broker,
    describe_cluster,
    describe_group,
    describe_topic,
)
from holdfast.broker.settings.layers import Found, Layers, Source
from holdfast.broker.settings.listeners import Endpoint
from holdfast.broker.settings.loading import Loaded, Problem, SettingsError, load, load_file
from holdfast.broker.settings.properties import PropertiesError, Property, read_properties
from holdfast.broker.settings.setting import Change, Kind, Scope, Setting, Value
from holdfast.broker.settings.table import BROKER, TOPIC, nearest_name
from holdfast.broker.settings.topics import (
    Effective,
    ThrottledReplicas,
    TopicConfigs,
    TopicSettings,
    flush_rule,
)

__all__ = [
    "BROKER",
    "TOPIC",
    "Alteration",
    "BrokerSettings",
    "Change",
    "ConfigRefusedError",
    "Described",
    "Effective",
    "Endpoint",
    "Found",
    "Kind",
    "Layers",
    "Loaded",
    "Operation",
    "Problem",
    "PropertiesError",
    "Property",
    "Scope",
    "Setting",
    "SettingsError",
    "Source",
    "Synonym",
    "ThrottledReplicas",
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
