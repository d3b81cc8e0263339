"""What goes wrong with brokers, records and permissions: each with what the topology says and does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ardea.trident import SqliteState
from tests.machine import patient
from tests.process.kafka.conftest import CA, SASL_SERVERS, logs

BOUNDED = """
class Made(Topology):
    lines = KafkaSpout("{source}", ["line"], lambda message: [message.value().decode()], end="latest"{more}).spec()
    out = KafkaSink("{out}", lambda tup: Record(tup["line"])).spec(inputs=[lines])
"""


def bounded(source, out, **more) -> str:
    return BOUNDED.format(source=source, out=out, more="".join(f", {key}={value!r}" for key, value in more.items()))


def ends(topology, state="SUCCEEDED"):
    outcome = topology.finish()
    assert outcome.state == state, outcome
    return outcome


# --- deleted records ------------------------------------------------------------------------------------------


@pytest.fixture
def gap(broker, running):
    """A topic of ten records, of which three were read when five were deleted; source and sink."""
    source, out = broker.topic(), broker.topic()
    broker.write(source, [str(number) for number in range(3)])
    with running(bounded(source, out, group=source), lives="before") as topology:
        ends(topology)
    broker.write(source, [str(number) for number in range(3, 10)])
    broker.delete_before(source, 0, 5)
    return source, out


def test_deleted_records_fail_the_topology_and_it_says_which(running, gap):
    source, out = gap
    with running(bounded(source, out, group=source)) as topology:
        outcome = ends(topology, "FAILED")
    assert f"offset 3 of {source}[0] is to be read next, but there are only 5 to 10" in outcome.reason


@pytest.mark.thorough
def test_deleted_records_are_skipped_if_the_author_says_so_and_the_log_says_how_many(broker, running, gap):
    source, out = gap
    with running(bounded(source, out, group=source, deleted="earliest")) as topology:
        ends(topology)
        assert "2 were skipped, and reading goes on at 5" in logs(topology, "lines-0")
    assert broker.read(out) == [str(number).encode() for number in [0, 1, 2, 5, 6, 7, 8, 9]]


@pytest.mark.thorough
def test_a_topic_that_is_deleted_before_it_is_read_to_its_end_fails_the_topology(broker, running):
    source, out = broker.topic(), broker.topic()
    broker.write(source, ["one"])
    body = bounded(source, out).replace(f'"{source}"', f're.compile("{source}")')
    with running("import re\n" + body.replace('"latest"', f'{{("{source}", 0): 9}}')) as topology:
        topology.until(lambda: broker.read(out) == [b"one"], "it is read")
        for done in broker.admin.delete_topics([source]).values():
            done.result(30)
        outcome = ends(topology, "FAILED")
    assert f"{source}[0] is not there any more; it was read up to offset 1 of 9" in outcome.reason


# --- records that cannot be emitted ---------------------------------------------------------------------------


@pytest.fixture
def spoiled(broker):
    """Good records around one that is no text and one that is too large for a tuple; source and sink."""
    source, out = broker.topic(), broker.topic()
    broker.write(source, [b"first", b"\xff\xfe", b"x" * 5000, b"last"])
    return source, out


@pytest.mark.thorough
def test_an_undecodable_record_fails_the_topology_and_it_says_which(running, spoiled):
    with running(bounded(*spoiled)) as topology:
        outcome = ends(topology, "FAILED")
    assert f"the record at offset 1 of {spoiled[0]}[0] cannot be emitted: UnicodeDecodeError" in outcome.reason


@pytest.mark.thorough
def test_undecodable_and_oversized_records_are_skipped_with_a_line_in_the_log(broker, running, spoiled):
    with running(bounded(*spoiled, undecodable="skip"), topology_max_tuple_bytes=4000) as topology:
        ends(topology)
        said = logs(topology, "lines-0")
    assert "offset 1 of" in said
    assert "5,000 bytes are more than topology.max.tuple.bytes, 4,000" in said
    assert broker.read(spoiled[1]) == [b"first", b"last"]
    assert broker.committed("Made.lines", spoiled[0]) == {0: 4}


def test_undecodable_records_go_to_a_stream_of_their_own(broker, running, spoiled):
    body = bounded(*spoiled, undecodable="emit") + (
        f"    bad = KafkaSink(\"{spoiled[1]}\", lambda tup: Record(f\"{{tup['offset']}} {{tup['error'][:7]}}\"))"
        '.spec(inputs=[lines["undecodable"]])\n'
    )
    with running(body, topology_max_tuple_bytes=4000) as topology:
        ends(topology)
    assert sorted(broker.read(spoiled[1])) == [b"1 Unicode", b"2 ValueEr", b"first", b"last"]


TRIDENT = """
from ardea.trident import Count, SqliteState, TridentTopology

topology = TridentTopology("Spoiled")
spout = KafkaTridentSpout.transactional(
    "{source}", ["line"], lambda message: [message.value().decode()], end="latest", undecodable="{undecodable}"
)
stream = topology.new_stream("lines", spout)
stream.group_by(stream.fields).persistent_aggregate(SqliteState.opaque("{counts}"), Count(), "count")
Made = topology.build()
"""


def test_undecodable_records_are_rows_of_a_batch_too(running, spoiled, tmp_path):
    body = TRIDENT.format(source=spoiled[0], counts=tmp_path / "counts", undecodable="emit")
    with running(body, topology_max_tuple_bytes=4000) as topology:
        ends(topology)
    found = dict(SqliteState.opaque(tmp_path / "counts").items())
    good = {key[0] for key in found if key[1] is None}
    bad = {key[1][2]: (key[1][4], key[1][5][:7]) for key in found if key[1] is not None}
    assert (good, bad) == ({"first", "last"}, {1: (b"\xff\xfe", "Unicode"), 2: (None, "ValueEr")})
    assert set(found.values()) == {1}


@pytest.mark.thorough
def test_records_too_large_for_the_broker_or_for_no_topic_fail_their_tuples_and_no_others(broker, running):
    source, out = broker.topic(max_message_bytes="4000000"), broker.topic()
    broker.write(source, [b"first", b"x" * 2_000_000, b"stray", b"last"], **{"message.max.bytes": 4_000_000})
    where = f'topic="{out}-nowhere" if tup["line"] == "stray" else None'
    body = bounded(source, out).replace('Record(tup["line"])', f'Record(tup["line"], {where})') + (
        f'    dead = KafkaSink("{out}", lambda tup: Record(str(tup["tup_id"][1])))'
        '.spec(inputs=[lines["__dead_letter"]])\n'
    )
    with running(body, topology_max_tuple_replays=1) as topology:
        ends(topology)
        said = logs(topology, "out-0")
    assert f"a record of 2,000,000 bytes for topic {out} was refused" in said
    assert "Message size too large" in said
    assert f"a record of 5 bytes for topic {out}-nowhere was refused: Broker: Unknown topic" in said
    assert sorted(broker.read(out)) == [b"1", b"2", b"first", b"last"]


# --- permissions and settings ---------------------------------------------------------------------------------


@pytest.fixture
def sasl() -> dict[str, str]:
    if not {SASL_SERVERS, CA} <= os.environ.keys():
        pytest.skip(f"{SASL_SERVERS} and {CA} do not name a listener that takes SASL/PLAIN over TLS, and its authority")
    return {
        "kafka_bootstrap_servers": os.environ[SASL_SERVERS],
        "kafka_security_protocol": "SASL_SSL",
        "kafka_ssl_ca_location": os.environ[CA],
        "kafka_sasl_mechanism": "PLAIN",
        "kafka_sasl_username": "ardea",
    }


def test_a_wrong_password_fails_the_topology_and_stands_nowhere(broker, running, sasl, monkeypatch, tmp_path):
    source = broker.topic()
    monkeypatch.setenv("KAFKA_TEST_PASSWORD", "osprey-4711")
    settings = {**sasl, "kafka_sasl_password": "env:KAFKA_TEST_PASSWORD"}
    with running(bounded(source, source), **settings) as topology:
        outcome = ends(topology, "FAILED")
        told = describe(topology), describe(topology, "-o", "json")
    assert all("Kafka refuses ardea at" in each and "osprey-4711" not in each for each in told), told
    assert f"Kafka refuses ardea at {os.environ[SASL_SERVERS]} (mechanism PLAIN)" in outcome.reason
    assert holders(tmp_path, b"osprey-4711") == []


@pytest.mark.thorough
def test_a_password_from_a_file_is_right_and_stands_nowhere_else(broker, running, sasl, tmp_path):
    source, out = broker.topic(), broker.topic()
    broker.write(source, [b"secretly"])
    file = tmp_path / "password"
    file.write_text("heron\n")
    with running(bounded(source, out), **{**sasl, "kafka_sasl_password": f"file:{file}"}) as topology:
        ends(topology)
    assert broker.read(out) == [b"secretly"]
    assert holders(tmp_path, b'heron"') + holders(tmp_path, b"heron\n") == [file]


@pytest.mark.thorough
def test_a_broker_whose_certificate_nobody_known_has_signed_is_not_believed(broker, running, sasl, monkeypatch):
    source = broker.topic()
    monkeypatch.setenv("KAFKA_TEST_PASSWORD", "heron")
    trusted = {key: value for key, value in sasl.items() if key != "kafka_ssl_ca_location"}
    with running(bounded(source, source), **trusted, kafka_sasl_password="env:KAFKA_TEST_PASSWORD") as topology:
        topology.until(lambda: "certificate verify failed" in logs(topology, "lines-0"), "the log says so")


def describe(topology, *options: str) -> str:
    """What the verb prints."""
    state = topology.folder.parents[1]
    command = [
        sys.executable,
        "-P",
        "-m",
        "ardea.cli",
        "describe",
        topology.folder.name,
        "--state",
        str(state),
        *options,
    ]
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patient(60)
    ).stdout


def holders(folder: Path, text: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


def test_a_property_that_the_client_does_not_know_and_one_that_is_ours_are_refused(broker, running):
    source = broker.topic()
    with running(bounded(source, source), kafka_sesion_timeout_ms=3) as topology:
        assert 'No such configuration property: "sesion.timeout.ms"' in ends(topology, "FAILED").reason
    with running(bounded(source, source), lives="b", kafka_group_id="mine") as topology:
        assert "kafka.group.id is set by Ardea: give KafkaSpout a group=" in ends(topology, "FAILED").reason


@pytest.mark.thorough
def test_a_topic_that_is_not_there_cannot_be_read_to_its_end(running):
    with running(bounded("test-nowhere", "test-nowhere")) as topology:
        assert "there is no test-nowhere, so that it cannot be read to its end" in ends(topology, "FAILED").reason


# --- groups ---------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_subscriber_with_the_same_group_holds_commits_up_and_the_log_says_so(broker, running):
    from confluent_kafka import Consumer

    source, out = broker.topic(), broker.topic()
    settings = {"bootstrap.servers": broker.servers, "group.id": source, "session.timeout.ms": 6000}
    with running(bounded(source, out, group=source).replace(', end="latest"', "")) as topology:
        topology.until(lambda: "from offset 0" in logs(topology, "lines-0"), "it has begun")
        stranger = Consumer({**settings, "enable.auto.commit": False})
        try:
            stranger.subscribe([source])
            topology.until(lambda: stranger.poll(0) is None and stranger.assignment(), "the stranger has joined")
            broker.write(source, [b"one"])
            said = f"offsets cannot be committed to group {source}: somebody else has subscribed with it"
            topology.until(lambda: said in logs(topology, "lines-0"), "the log says so")
        finally:
            stranger.close()
        topology.until(lambda: broker.committed(source, source) == {0: 1}, "it is committed")
    assert broker.read(out) == [b"one"]
