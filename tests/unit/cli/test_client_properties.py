"""Kafka's client properties become librdkafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cluster.admin.client_properties import read_file, translated
from holdfast.cluster.errors import ClusterError

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def test_what_both_know_is_passed_on() -> None:
    given = {"bootstrap.servers": "b:9093", "security.protocol": "SASL_SSL", "acks": "all"}
    assert translated(given) == given


@pytest.mark.parametrize(
    ("options", "login"),
    [
        ('username="a" password="b c";', ("a", "b c")),
        ("password='x' username=a;", ("a", "'x'")),
        (r'username="a" password="say \"hi\"";', ("a", 'say "hi"')),
    ],
)
def test_a_login_is_read_from_the_java_class_s_options(
    options: str, login: tuple[str, str]
) -> None:
    found = translated({"sasl.jaas.config": f"{SCRAM} {options}"})
    assert found == {"sasl.username": login[0], "sasl.password": login[1]}


def test_pem_files_and_texts_are_used() -> None:
    assert translated(
        {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "me.pem",
            "ssl.endpoint.identification.algorithm": "",
        }
    ) == {
        "ssl.ca.location": "ca.pem",
        "ssl.key.location": "me.pem",
        "ssl.certificate.location": "me.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }
    texts = {
        "ssl.truststore.certificates": "CA",
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "KEY",
    }
    assert translated(texts) == {
        "ssl.ca.pem": "CA",
        "ssl.certificate.pem": "CHAIN",
        "ssl.key.pem": "KEY",
    }


def test_a_java_key_store_is_refused_by_its_name() -> None:
    with pytest.raises(ClusterError, match=r"ssl\.truststore\.location=ca\.jks is a JKS file"):
        translated({"ssl.truststore.location": "ca.jks"})
    with pytest.raises(ClusterError, match="is a JKS file"):
        translated({"ssl.keystore.location": "me.jks"})
    pkcs12 = {"ssl.keystore.location": "me.p12", "ssl.keystore.type": "PKCS12"}
    assert translated(pkcs12) == {"ssl.keystore.location": "me.p12"}


def test_an_error_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.jaas.config=nothing\n")
    with pytest.raises(ClusterError, match=r"client\.properties: sasl\.jaas\.config has no user"):
        read_file(file)
    file.write_text("a=\\uXYZ\n")
    with pytest.raises(ClusterError, match=r"client\.properties: line 1"):
        read_file(file)
