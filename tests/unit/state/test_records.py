"""Records come back as they were stored, and say so when they do not; the state's address is understood."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import StateError, UserError
from ardea.plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from ardea.state import FileState, open_state, records
from ardea.state.address import CREDENTIAL, SECRETS, Address, Secrets
from ardea.state.records import Admission, ExecutionState, Incarnations, MasterLocation, RunState, TopologyRecord

CONFIG = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text())
RECORDS = st.one_of(
    st.builds(
        TopologyRecord,
        config=CONFIG,
        submitted_at=st.datetimes(timezones=st.just(UTC)),
    ),
    st.builds(ExecutionState),
    st.builds(MasterLocation),
    st.builds(Incarnations, st.dictionaries(st.integers(0, 9999), st.builds(Admission))),
)


@given(RECORDS)
def test_a_record_comes_back(record):
    assert records.decode(records.encode(record), type(record), "/here") == record


def test_a_packing_plan_comes_back():
    instance = InstancePlan(1, "count", 0, 0, Resource())
    plan = PackingPlan("round_robin", (ContainerPlan(1, (instance,), Resource(0.5, 1, 2)),))
    assert records.decode(records.encode(plan), PackingPlan, "/here") == plan


def test_fields_of_a_newer_version_are_passed_over():
    data = records.encode(ExecutionState(RunState.FAILED, "why"))
    newer = data.replace(b'"reason"', b'"added":[1],"reason"')
    assert newer != data
    assert records.decode(newer, ExecutionState, "/here") == ExecutionState(RunState.FAILED, "why")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (records.encode(MasterLocation(host="h", port=1, term=1, pid=1)), "it is a MasterLocation"),
        (b"", "truncated"),
        (b"\xff", "malformed"),
        (records.encode(ExecutionState(RunState.FAILED, "why")).replace(b"why", b"\xff"), "utf-8"),
        (records.encode(ExecutionState(RunState.FAILED)).replace(b"FAILED", b"DANCING"), "DANCING"),
    ],
)
def test_something_else_names_the_path(data, says):
    with pytest.raises(StateError, match="/here does not hold a ExecutionState") as caught:
        records.decode(data, ExecutionState, "/here")
    assert says.casefold() in caught.value.message.casefold()  # the sentence is the library's


def test_final_states_are_those_that_nothing_follows():
    assert {state for state in RunState if state.final} == {RunState.SUCCEEDED, RunState.FAILED, RunState.KILLED}


def test_records_are_frozen():
    with pytest.raises(AttributeError):
        ExecutionState(RunState.RUNNING).reason = "changed"
    assert msgspec.structs.replace(ExecutionState(RunState.RUNNING), reason="why").reason == "why"


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("/var/lib/ardea", Path("/var/lib/ardea")),
        ("some/where", Path.cwd() / "some/where"),
        ("~/ardea", Path.home() / "ardea"),
        ("file:///var/lib/ardea", Path("/var/lib/ardea")),
        ("FILE://localhost/with%20space", Path("/with space")),
    ],
)
def test_an_address_names_a_directory(url, root):
    state = open_state(url)
    assert isinstance(state, FileState)
    assert state.root == root


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("etcd://host:2379/ardea", "unknown scheme 'etcd'"),
        ("zookeeper://", "'' in the state's address zookeeper:// is no host:port"),
        ("zookeeper:///ardea", "is no host:port"),
        ("zookeeper://a:1,b:99999/ardea", "'b:99999' .* is no host:port"),
        ("zookeeper://a:1,b c/ardea", "'b c' .* is no host:port"),
        ("zookeeper://a/ar dea", "'/ar dea' .* is no path"),
        ("zookeeper://a/x/../y", "is no path"),
        ("zookeeper://user:secret@a/ardea", "a credential does not belong"),
        ("file://relative/path", "no absolute path"),
        ("file://", "no absolute path"),
        ("", "empty"),
    ],
)
def test_an_address_that_is_not_understood_says_why(url, says):
    with pytest.raises(UserError, match=says) as caught:
        open_state(url)
    assert caught.value.hint
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("url", "hosts", "root"),
    [
        ("zookeeper://zk", "zk:2181", "/ardea"),
        ("zookeeper://zk/", "zk:2181", "/ardea"),
        ("zookeeper://a:1,b-2.c:65535/x/y", "a:1,b-2.c:65535", "/x/y"),
        ("ZooKeeper://[::1]:2182,10.0.0.1/x/", "[::1]:2182,10.0.0.1:2181", "/x"),
    ],
)
def test_an_address_names_servers_and_a_root(url, hosts, root):
    assert Address.parse(url, {}) == Address(hosts, root)


def test_the_credential_comes_from_the_environment():
    assert Address.parse("zookeeper://a", {CREDENTIAL: "u:p:q"}).credential == "u:p:q"
    for wrong in ("u", "u:", ":p"):
        with pytest.raises(UserError, match=f"{CREDENTIAL} is not user:password"):
            Address.parse("zookeeper://a", {CREDENTIAL: wrong})


@pytest.mark.parametrize(
    ("url", "hosts", "tls"),
    [
        ("zookeeper+tls://a,b:1", "a:2281,b:1", True),
        ("ZooKeeper+TLS://a/x", "a:2281", True),
        ("zookeeper://a", "a:2181", False),
    ],
)
def test_an_address_says_whether_it_is_encrypted(url, hosts, tls):
    found = Address.parse(url, {})
    assert (found.hosts, found.tls) == (hosts, tls)


def test_what_servers_want_to_see_is_read_anew_and_not_shown(tmp_path):
    (tmp_path / "sasl").write_text("ardea:s3:xyz\n")
    found = Address.parse("zookeeper://a", {SECRETS: str(tmp_path)})
    assert found.secrets == Secrets(tmp_path)
    assert found.secrets.sasl == ("ardea", "s3:xyz")
    assert "xyz" not in repr(found)
    (tmp_path / "sasl").write_text("ardea:other")
    assert found.secrets.sasl == ("ardea", "other")
    (tmp_path / "sasl").unlink()
    assert found.secrets.sasl is None


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "has none of ca.crt, tls.crt, tls.key and sasl"),
        ({"ca.pem": ""}, "has none of ca.crt, tls.crt, tls.key and sasl"),
        ({"ca.crt": "", "tls.crt": ""}, "has one of tls.crt and tls.key only"),
        ({"tls.key": ""}, "has one of tls.crt and tls.key only"),
        ({"sasl": "ardea"}, "sasl is not user:password"),
        ({"sasl": "ardea:"}, "sasl is not user:password"),
    ],
)
def test_a_folder_that_opens_nothing_is_refused(tmp_path, files, says):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=says) as caught:
        Address.parse("zookeeper://a", {SECRETS: str(tmp_path)})
    assert caught.value.hint
