"""The supervisor's files."""

from __future__ import annotations

import json

import pytest

from ardea.errors import ClusterError, ConfigError
from ardea.supervision import records
from ardea.supervision.spec import RESTARTED, Policy, ProcessSpec, dump, load


def test_a_life_counts_up_and_survives(tmp_path):
    assert records.read_life(tmp_path, "a") == 0
    assert [records.raise_life(tmp_path, "a") for _ in range(3)] == [1, 2, 3]
    assert records.raise_life(tmp_path, "b") == 1
    assert records.read_life(tmp_path, "a") == 3


@pytest.mark.parametrize("text", ["", "-1", "1.5", "seven", "٣"])
def test_a_life_that_is_no_number_is_an_error_that_names_the_file(tmp_path, text):
    (tmp_path / "lives").mkdir()
    (tmp_path / "lives" / "a").write_text(text)
    with pytest.raises(ClusterError, match=r"lives/a holds .* cannot be started"):
        records.raise_life(tmp_path, "a")


def test_a_reason_is_one_line_and_taken_once(tmp_path):
    assert records.take_reason(tmp_path, "a") is None
    records.write_reason(tmp_path, "a", "what\n  and where\n")
    assert records.take_reason(tmp_path, "a") == "what and where"
    assert records.take_reason(tmp_path, "a") is None


def test_the_last_twenty_ends_are_kept(tmp_path):
    ends = [records.Exit("a", life, 1, 1, None, "exit 1", float(life)) for life in range(25)]
    for end in ends:
        records.write_exit(tmp_path, end)
    assert records.read_exits(tmp_path, "a") == ends[5:]
    assert records.read_exits(tmp_path, "b") == []


def test_status_is_empty_before_there_was_a_supervisor(tmp_path):
    assert records.read_status(tmp_path) == {}
    records.write_status(tmp_path, {"state": "running"})
    assert records.read_status(tmp_path) == {"state": "running"}


@pytest.mark.parametrize(
    ("others", "last"),
    [(["finished", "failed"], True), (["finished", "running"], False), (["waiting"], False), ([], False)],
)
def test_the_last_process_has_only_ended_ones_beside_it(tmp_path, others, last):
    states = {"me": "running", **{f"other-{n}": state for n, state in enumerate(others)}}
    assert not records.is_last(tmp_path, "me")
    records.write_status(tmp_path, {"processes": {name: {"state": state} for name, state in states.items()}})
    assert records.is_last(tmp_path, "me") is last
    assert not records.is_last(tmp_path, "a stranger")


def test_a_specification_comes_back_as_it_was(tmp_path):
    processes = [
        ProcessSpec("count-1", ("python", "-m", "ardea.heron_instance"), {"A": "b"}, 1 << 28, "never"),
        ProcessSpec("$mastercoord-bg0-1", ("x",)),
    ]
    policy = Policy(silence=0.5, log_files=2, log_format="json")
    (tmp_path / "spec.json").write_text(dump(processes, policy))
    assert load(tmp_path / "spec.json") == (processes, policy)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "Expecting"),
        ("{}", "no key 'processes'"),
        ({"processes": [], "polict": {}}, "unknown key 'polict'"),
        ({"processes": [{"name": "a", "argv": "python"}]}, "a: argv must be a list"),
        ({"processes": [{"name": "a", "argv": []}]}, "a: argv is empty"),
        ({"processes": [{"name": "../a", "argv": ["x"]}]}, "without '/'"),
        ({"processes": [{"name": "a", "argv": ["x"], "ram": 0}]}, "ram is 0 bytes"),
        ({"processes": [{"name": "a", "argv": ["x"], "restart": "maybe"}]}, "restart is 'maybe'"),
        ({"processes": [{"name": "a", "argv": ["x"], "argz": 1}]}, "argz"),
        ({"processes": [], "policy": {"silence": 0}}, "policy.silence is 0"),
        ({"processes": [], "policy": {"grace": "5"}}, "policy.grace is '5'"),
        ({"processes": [], "policy": {"log_format": "xml"}}, "policy.log_format is 'xml'; must be one of text, json"),
        ([], "cannot be used"),
    ],
)
def test_a_wrong_specification_says_where_and_what(tmp_path, document, message):
    path = tmp_path / "spec.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(ConfigError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("code", "signal", "reason", "final"),
    [
        (0, None, "exit 0", True),
        (75, None, "exit 75", False),
        (None, "SIGKILL", "killed by SIGKILL", False),
        (78, None, "exit 78 (no ledger)", True),
        (78, None, f"exit 78 ({RESTARTED})", False),
    ],
)
def test_what_ends_with_0_or_78_has_ended_for_good(tmp_path, code, signal, reason, final):
    assert records.final_end(tmp_path, "a") is None
    ended = records.Exit("a", 1, 1, code, signal, reason, 0.0)
    records.write_exit(tmp_path, ended)
    records.write_exit(tmp_path, records.Exit("b", 1, 1, 0, None, "", 0.0))
    assert records.final_end(tmp_path, "a") == (ended if final else None)
