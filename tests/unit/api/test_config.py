"""The table of keys, and what happens to configurations that do not keep to it."""

from __future__ import annotations

import enum
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea import units
from ardea.config import KEYS, Settings, merge
from ardea.config_check import check, parse, stored, validate
from ardea.config_keys import ALIASES
from ardea.errors import ConfigError

MIB = 1 << 20


def test_defaults_are_valid_and_in_normal_form():
    set_defaults = {name: key.default for name, key in KEYS.items() if key.default is not None and key.default != ()}
    assert validate(set_defaults, "defaults") == set_defaults


def test_every_key_has_a_sentence_and_a_scope():
    assert [k.name for k in KEYS.values() if not (k.sentence.endswith(".") and k.type)] == []
    assert {k.scope for k in KEYS.values()} <= {"topology", "component", "both", "system"}
    assert {alias.key for alias in ALIASES.values()} <= KEYS.keys()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("topology.message.timeout.secs", 30.0),
        ("topology.max.spout.pending", 20_000),
        ("topology.max.spout.pending.bytes", 64 * MIB),
        ("topology.max.held.bytes", 32 * MIB),
        ("topology.max.tuple.bytes", 10 * MIB),
        ("topology.reliability.mode", "ATLEAST_ONCE"),
        ("heron.streammgr.cache.drain.frequency.ms", 10.0),
        ("topology.max.tuple.replays", None),
        ("supervisor.slots.ports", 4),
    ],
)
def test_documented_defaults(name, expected):
    assert KEYS[name].default == expected


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("topology.mesage.timeout.secs", "topology.message.timeout.secs"),
        ("topology.max.spout.pendin", "topology.max.spout.pending"),
        ("heron.logging.maximum.file", "heron.logging.maximum.files"),
        ("topology.worker", "topology.workers"),
    ],
)
def test_unknown_key_is_an_error_with_the_nearest_name(name, nearest):
    with pytest.raises(
        ConfigError, match=f"topology 't': unknown configuration key '{name}'; did you mean '{nearest}'"
    ):
        validate({name: 1}, "topology 't'")


@pytest.mark.parametrize(
    ("name", "field"),
    [("node.selector", "nodeSelector"), ("tolerations", "tolerations"), ("priority.class", "priorityClassName")],
)
def test_a_key_that_there_was_names_what_is_set_instead(name, field):
    with pytest.raises(ConfigError, match=f"'heron.kubernetes.{name}'; set {field} in heron.kubernetes.pod.spec$"):
        validate({f"heron.kubernetes.{name}": "x"}, "topology 't'")


@pytest.mark.parametrize(("value", "normal"), [("never", None), (None, None), (0, 0.0), (2, 2.0), (1.5, 1.5)])
def test_a_time_may_have_no_end(value, normal):
    made = validate({"heron.kubernetes.ttl.secs": value}, "t")
    assert made == {"heron.kubernetes.ttl.secs": normal}
    assert validate(made, "t") == made
    assert Settings.of(made).kubernetes_ttl == normal


def test_keys_of_the_author_pass_through():
    config = {"words.file": "a.txt", "limits": {"low": 1, "all": [1, 2.5, None, b"x", (True,)]}}
    assert validate(config, "t") == config


@pytest.mark.parametrize("value", [object(), {1, 2}, [object()], {"a": {3}}, {1: 2}])
def test_values_that_processes_would_build_differently_are_refused(value):
    """Sets are ordered by a salted hash, objects printed with their address: either would make digests differ."""
    with pytest.raises(ConfigError, match="'mine' takes"):
        validate({"mine": value}, "t")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topology.debug", "yes"),
        ("topology.debug", 1),
        ("topology.max.spout.pending", 0),
        ("topology.max.spout.pending", True),
        ("topology.max.spout.pending", 1.5),
        ("topology.max.spout.pending", None),
        ("topology.message.timeout.secs", 0),
        ("topology.message.timeout.secs", math.nan),
        ("topology.message.timeout.secs", math.inf),
        ("topology.message.timeout.secs", "30"),
        ("topology.max.tuple.bytes", "10"),
        ("topology.max.tuple.bytes", -1),
        ("topology.reliability.mode", "EXACTLY_ONCE"),
        ("topology.reliability.mode", []),
        ("topology.auto.task.hooks", [1]),
        ("topology.component.rammap", "split"),
        ("topology.component.rammap", "split:2 parsecs"),
        ("topology.component.rammap", ":5"),
        ("topology.component.cpumap", 5),
        ("supervisor.slots.ports", []),
        ("heron.kubernetes.ttl.secs", -1),
        ("heron.kubernetes.ttl.secs", "for ever"),
        ("heron.kubernetes.pod.spec", "nodeSelector"),
        ("heron.kubernetes.pod.spec", [{"nodeSelector": {}}]),
        ("heron.kubernetes.pod.spec", {1: 2}),
        ("topology.master.ram", "much"),
    ],
)
def test_ill_typed_value_is_an_error(name, value):
    with pytest.raises(ConfigError, match=f"'{name}' takes"):
        validate({name: value}, "t")


@pytest.mark.parametrize(
    ("mode", "config", "seconds"),
    [
        ("ATLEAST_ONCE", {"topology.message.timeout.secs": 60.0}, 10.0),
        ("EFFECTIVELY_ONCE", {}, 0.5),
        ("EFFECTIVELY_ONCE", {"topology.stateful.queue.millis": 20}, 0.02),
    ],
)
def test_where_snapshots_are_taken_less_work_may_wait_for_a_task(mode, config, seconds):
    settings = Settings.of(validate({"topology.reliability.mode": mode, **config}, "t"))
    assert (settings.remembers, settings.horizon) == (mode == "EFFECTIVELY_ONCE", seconds)


def test_all_problems_are_reported_at_once():
    config = {"topology.debug": 3, "topology.nme": "x", "topology.stmgrs": 0, "mine": 1}
    normal, problems = check(config, "t")
    assert (normal, len(problems)) == ({"mine": 1}, 3)
    with pytest.raises(ConfigError) as caught:
        validate(config, "t")
    assert caught.value.message.splitlines() == problems


@pytest.mark.parametrize("config", [None, "a=b", ["x"]])
def test_a_configuration_is_a_mapping(config):
    assert check(config, "t")[1] == [f"t: a configuration is a dict of keys and values, not {config!r}"]


def test_aliases_become_the_key():
    config = {"topology.workers": 3, "topology.tick.tuple.freq.ms": 1500}
    assert validate(config, "t") == {"topology.stmgrs": 3, "topology.tick.tuple.freq.secs": 1.5}


def test_aliases_may_agree_but_not_differ():
    assert validate({"topology.workers": 3, "topology.stmgrs": 3}, "t") == {"topology.stmgrs": 3}
    with pytest.raises(ConfigError, match=r"'topology.stmgrs' and 'topology.workers' mean the same, yet differ"):
        validate({"topology.workers": 3, "topology.stmgrs": 2}, "t")


def test_a_component_cannot_set_what_belongs_to_the_topology():
    for name in ("topology.stmgrs", "topology.message.timeout.secs", "heron.metricsmgr.port"):
        with pytest.raises(ConfigError, match=f"'{name}' belongs to the topology's configuration"):
            validate({name: 1}, "component 'c'", component=True)
    assert validate({"topology.debug": True}, "component 'c'", component=True) == {"topology.debug": True}


def test_maps_are_written_as_text_or_dict():
    expected = {"topology.component.rammap": {"a": 256_000_000, "b": 5}, "topology.component.cpumap": {"a": 0.5}}
    as_text = {"topology.component.rammap": "a:256MB, b:5", "topology.component.cpumap": "a:0.5"}
    as_dict = {"topology.component.rammap": {"a": "256MB", "b": 5}, "topology.component.cpumap": {"a": 0.5}}
    assert validate(as_text, "t") == validate(as_dict, "t") == expected


def test_later_layers_win_and_defaults_lie_below():
    settings = Settings.of({"topology.debug": True, "topology.spout.wait.ms": 5.0}, {"topology.spout.wait.ms": 1.0})
    assert (settings.debug, settings.spout_wait_ms, settings.batch_rows) == (True, 1.0, 1000)
    merged = merge({"mine": 1})
    assert (merged["mine"], merged["topology.message.timeout.secs"]) == (1, 30.0)


def test_command_line_assignments():
    texts = ["topology.name=17", "topology.debug=true", "topology.max.tuple.bytes=1MiB", "mine=a=b", "n=[1]"]
    assert parse(texts) == {
        "topology.name": "17",
        "topology.debug": True,
        "topology.max.tuple.bytes": "1MiB",
        "mine": "a=b",
        "n": [1],
    }
    for wrong in ("topology.debug", "=1"):
        with pytest.raises(ConfigError, match="key=value"):
            parse([wrong])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("256MB", 256_000_000),
        ("512MiB", 512 * MIB),
        ("5GB", 5_000_000_000),
        ("1.5 gib", 3 * 512 * MIB),
        ("2tb", 2 * 10**12),
        ("7B", 7),
        (0, 0),
    ],
)
def test_sizes(written, expected):
    assert units.size(written) == expected


@pytest.mark.parametrize("written", ["", "MB", "5", "5XB", "5iB", "-5MB", "5 M B", -1, True, 1.5, None])
def test_bad_sizes(written):
    with pytest.raises(ValueError, match="a number of bytes"):
        units.size(written)


@given(st.integers(0, 1 << 20), st.sampled_from(["B", "KB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB"]))
def test_a_size_is_its_number_times_its_unit(number, unit):
    prefix, base = unit[:-1].rstrip("i"), 1024 if "i" in unit else 1000
    assert units.size(f"{number}{unit}") == number * base ** ["", "K", "M", "G", "T"].index(prefix)


@given(
    st.dictionaries(
        st.sampled_from([*KEYS, *ALIASES, "mine", "topology.x"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())),
    )
)
def test_checking_never_raises_and_its_result_is_a_fixed_point(config):
    normal, problems = check(config, "t")
    assert check(normal, "t") == (normal, [])
    assert bool(problems) == (len(normal) < len(config)) or set(config) & ALIASES.keys()


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (units.size, 1 << 63),
        (units.size, "99999999999999999999TB"),
        (units.size, "9" * 400 + "GB"),
        (units.integer, 1 << 63),
        (units.count, 10**400),
        (units.number, 10**400),
        (units.number, 1e300),
        (units.positive, 10**400),
        (units.plain, 1 << 63),
        (units.plain, [{"a": -(1 << 63) - 1}]),
    ],
)
def test_numbers_fit_into_64_bits(check, value):
    with pytest.raises(ValueError, match="9223372036854775807 at most"):
        check(value)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [nested(100_000), 10**5000, [10**5000], "x" * 1_000_000, {"a": {1, 2}}], ids=type)
def test_a_value_that_is_refused_is_shown_in_short(value):
    with pytest.raises(ConfigError, match=r"'topology.message.timeout.secs' takes") as refused:
        validate({"topology.message.timeout.secs": value}, "x")
    assert len(str(refused.value)) < 1000


class Float(float):
    """As numpy's float64, and its texts are."""


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("value", [Float(1), Text("a"), [Float(1)], {"a": Text("a")}])
def test_what_only_looks_plain_is_refused(value):
    """No definition could be made of it."""
    with pytest.raises(ConfigError, match=r"x: 'mine' takes a plain value .*, not "):
        validate({"mine": value}, "x")


class Mode(str, enum.Enum):  # noqa: UP042 -- its str() is its name
    ONCE = "ATMOST_ONCE"


@pytest.mark.parametrize("text", [Text("ATMOST_ONCE"), Mode.ONCE])
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("topology.name", lambda text: text),
        ("topology.reliability.mode", lambda text: text),
        ("topology.auto.task.hooks", lambda text: [text]),
        ("heron.kubernetes.labels", lambda text: {text: text}),
    ],
)
def test_a_text_of_another_class_is_taken_as_python_s_own(name, write, text):
    expected = write("ATMOST_ONCE")
    normal = validate({name: write(text)}, "x")
    assert repr(normal) == repr({name: expected})
    assert stored({name: write(text)}, "x") == {name: expected}


class Red(enum.StrEnum):
    RED = "red"
    HALF = "\udcff"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("files", ["a.txt", "\udcff.txt"]),
        ("files", {"\udcff.txt": 1}),
        ("files", Red.HALF),
        ("topology.name", "\udcff"),
        ("topology.auto.task.hooks", ["\udcff:A"]),
        ("topology.component.cpumap", "\udcff:1"),
        ("heron.kubernetes.labels", {"a": "\udcff"}),
    ],
)
def test_a_text_that_is_no_utf_8_is_refused_where_it_stands(name, value):
    """As the name of a file may be."""
    with pytest.raises(ConfigError, match=rf"x: '{name}' takes .*, not .*\\udcff"):
        stored({name: value}, "x")


def test_a_key_that_is_no_utf_8_is_refused():
    with pytest.raises(ConfigError, match=r"x: configuration keys are texts that UTF-8 has, not '\\udcff'"):
        stored({"\udcff": 1}, "x")


def test_a_member_of_an_enumeration_is_its_value_in_a_definition():
    assert stored({"mine": Red.RED}, "x") == {"mine": "red"}


def test_lists_and_dicts_have_an_end():
    endless = []
    endless.append({"a": endless})
    for value in (endless, nested(100_000)):
        with pytest.raises(ConfigError, match="'mine' takes a plain value, whose lists and dicts are nested 50 deep"):
            validate({"mine": value}, "x")
    assert validate({"mine": nested(49)}, "x") == {"mine": nested(49)}
