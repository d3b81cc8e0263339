"""Settings pass through, and secrets stand nowhere; what is wrong is said at once."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from ardea import Bolt, Topology, TopologyError
from ardea.config_check import check
from ardea.errors import ConfigError
from ardea.kafka import KafkaSink, KafkaSpout, KafkaState, KafkaTridentSpout
from ardea.kafka.client import properties

SERVERS = {"kafka.bootstrap.servers": "here:9092"}


def test_properties_lose_their_prefix_and_secrets_are_read_where_they_are(monkeypatch, tmp_path):
    monkeypatch.setenv("ARDEA_TEST_SECRET", "egret")
    file = tmp_path / "key"
    file.write_text("bittern\n")
    config = {
        **SERVERS,
        "kafka.fetch.wait.max.ms": 7,
        "kafka.sasl.password": "env:ARDEA_TEST_SECRET",
        "kafka.ssl.key.password": f"file:{file}",
        "topology.name": "other",
    }
    assert properties(config) == {
        "bootstrap.servers": "here:9092",
        "fetch.wait.max.ms": 7,
        "sasl.password": "egret",
        "ssl.key.password": "bittern",
    }


def test_what_cannot_be_used_is_said():
    for config, said in [
        ({}, "kafka.bootstrap.servers is not set"),
        ({**SERVERS, "kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset is set by Ardea: give start="),
        ({**SERVERS, "kafka.sasl.password": "env:ARDEA_TEST_UNSET"}, "from the variable ARDEA_TEST_UNSET"),
        ({**SERVERS, "kafka.sasl.password": "file:/nowhere/at/all"}, "No such file"),
        ({"kafka.bootstrap.servers": ["a:1", "b:1"]}, "kafka.bootstrap.servers is a text, a number or a truth"),
    ]:
        with pytest.raises(ConfigError, match=re.escape(said)):
            properties(config)


SECRETS = [
    "sasl.password",
    "sasl.pasword",
    "ssl.key.password",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "ssl.keystore.password",
    "ssl.key.pem",
    "sasl.oauthbearer.client.secret",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_in_the_configuration_is_refused_and_not_repeated(name):
    normal, [problem] = check({f"kafka.{name}": "egret"}, "topology 'T'")
    assert normal == {}
    assert f"'kafka.{name}' is a secret, which must not stand here: write 'env:VARIABLE' or 'file:PATH'" in problem
    assert "egret" not in problem
    assert check({f"kafka.{name}": "env:X"}, "topology 'T'") == ({f"kafka.{name}": "env:X"}, [])
    assert check({"kafka.sasl.username": "egret"}, "t")[1] == []


def test_all_that_is_wrong_with_a_spout_is_said_at_once():
    with pytest.raises(TopologyError) as raised:
        KafkaSpout(
            [],
            translate=lambda _: None,
            translate_batch=lambda _: None,
            group="",
            start="begin",
            otherwise=datetime(2026, 1, 1),  # noqa: DTZ001
            end={"t": 3},
            deleted="ignore",
            undecodable="ignore",
        )
    assert len(raised.value.problems) == 8
    with pytest.raises(TopologyError, match="the topic is a name, not ''"):
        KafkaSink("")
    with pytest.raises(TopologyError, match=r"records= takes a number from 1, not 0"):
        KafkaTridentSpout.transactional("t", records=0, end=datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(TopologyError, match="the name is a text"):
        KafkaState("")


class Nothing(Bolt):
    def process(self, tup):
        pass


class Reads(Topology):
    lines = KafkaSpout("lines", ["line"], lambda m: [m.value()], undecodable="emit").spec(par=2)
    sink = KafkaSink("out").spec(inputs=[lines])
    other = Nothing.spec(inputs=[lines["undecodable"]])
    config = SERVERS


def test_building_a_topology_opens_nothing_and_declares_the_streams():
    plan = Reads.plan()
    streams = {stream.name: stream.fields for stream in plan["lines"].streams}
    assert streams["default"] == ("line",)
    assert streams["undecodable"] == ("topic", "partition", "offset", "key", "value", "error")
