"""The topologies that README and docs/guide.md show do what the text beside them says."""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ardea import Bolt, FailedException, Grouping, Spout, Topology
from ardea.testing import Cluster, RowsSpout, run
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import states

ROOT = Path(__file__).parents[3]


def blocks(page: str) -> list[str]:
    """The Python of a page, block by block."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def run_block(block: str, name: str = "page") -> dict[str, Any]:
    """What a block defines, in the file of that name."""
    names: dict[str, Any] = {"__name__": name}
    exec(block, names)
    return names


@pytest.fixture
def file(monkeypatch):
    """Lets later blocks import a block that the page gives a name."""

    def written(name: str, block: str) -> dict[str, Any]:
        module = types.ModuleType(name)
        vars(module).update(run_block(block, name))
        monkeypatch.setitem(sys.modules, name, module)
        return vars(module)

    return written


def test_the_readmes_topology_prints_its_counts(file, capsys):
    """And emits what the first example of docs/testing.md asks for."""
    topology, _ = blocks("README.md")
    (printed,) = re.findall(r"^```\n(count-.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    file("word_count", topology)
    test = next(block for block in blocks("docs/testing.md") if "WordCount" in block)
    capsys.readouterr()
    run_block(test)["test_word_count"]()
    expected = [line.partition(": ")[2] for line in printed.splitlines()]
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(expected)


def test_the_readmes_second_topology_counts_each_word_once_though_a_task_dies(file):
    _, topology = blocks("README.md")
    names = file("remember", topology)
    with Cluster(names["Remember"], cost={"words": 0.1}) as cluster:
        store = Inside(cluster).store
        cluster.advance(30)
        cluster.kill("count-0")
        cluster.run_until(lambda: store.records[-1].timeline > 1)
        before = store.records[-1].committed
        cluster.run_until(lambda: store.records[-1].committed > before)
        (position,), counts = states(store, store.records[-1].committed)
    assert counts == Counter(names["WORDS"][place % len(names["WORDS"])] for place in range(position))
    assert position > 200


def test_tridents_first_topology_counts_where_the_page_reads(file, tmp_path, capsys):
    topology, reading, *_ = blocks("docs/trident.md")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("the heron waits\nthe heron\n")
    names = file("words", topology.replace("/tmp/words", str(tmp_path)))
    assert run(names["Words"]).state == "SUCCEEDED"
    capsys.readouterr()
    run_block(reading)
    assert sorted(capsys.readouterr().out.splitlines()) == ["heron 2", "the 2", "waits 1"]


*SHOWN, TEST = blocks("docs/guide.md")


def defined(name: str) -> dict[str, Any]:
    """What the block of the guide defines in which a class or variable of that name is."""
    (block,) = [b for b in SHOWN if re.search(rf"^(class {name}\b|{name} = )", b, re.MULTILINE)]
    return run_block(block)


def failing(field: str, value: Any) -> type[Bolt]:
    """A bolt that fails the tuples with this value."""

    class Failing(Bolt):
        def process(self, tup):
            if tup[field] == value:
                raise FailedException("not this one")

    return Failing


def test_each_block_of_the_guide_is_run_below():
    shown = [re.findall(r"^class (\w+)|^(\w+) = \w+\.build\(\)", block, re.MULTILINE)[-1] for block in SHOWN]
    assert [a or b for a, b in shown] == ["Shop", "ThreeTimes", "Warehouse", "Count", "Cards", "Import", "Fan"]


def test_the_guides_test_passes(file):
    file("shop", next(block for block in SHOWN if "class Shop" in block))
    run_block(TEST)["test_totals"]()


def test_many_rows_are_emitted_by_one_call():
    block = run_block(next(block for block in SHOWN if "class Split" in block))

    class Lines(Spout):
        outputs = ("line",)

        def initialize(self, config, context):
            self.lines = ["a b a", "b"]

        def next_tuple(self):
            if self.lines:
                self.emit((self.lines.pop(),), tup_id=len(self.lines))
            else:
                self.finish()

    class Words(Topology):
        lines = Lines.spec()
        split = block["Split"].spec(inputs=[lines])
        count = block["Count"].spec(inputs={split: Grouping.fields("word")})

    assert sorted(run(Words).tuples("count")) == [("a", 2), ("b", 2)]


@pytest.mark.parametrize("times", [3, 1])
def test_a_spout_that_decides_gives_up_after_three_times(times):
    class Stubborn(Topology):
        numbers = defined("ThreeTimes")["ThreeTimes"].spec()
        check = failing("n", 2 if times == 3 else None).spec(inputs=[numbers])

    result = run(Stubborn)
    assert sorted(result.inputs("check")) == [(1,), *[(2,)] * times, (3,)]
    expected = ("FAILED", "1 tuple was given up") if times == 3 else ("SUCCEEDED", "")
    assert (result.state, result.reason.partition(";")[0]) == expected


def test_held_tuples_leave_by_number_by_tick_and_at_the_end():
    warehouse = defined("Warehouse")["Warehouse"]
    result = run(warehouse)
    assert result.tuples("store") == [(100,), (100,), (50,)]
    assert sorted(result.acked["numbers"]) == list(range(250))
    slow = run(warehouse, cost={"numbers": 0.2}, config={"store.rows": 10})  # a component's own value wins
    sizes = [size for (size,) in slow.tuples("store")]
    assert sum(sizes) == 250
    assert set(sizes[1:-1]) <= {24, 25, 26}  # five seconds of rows; before the first tick it had to start


def test_groupings_of_the_authors_own():
    result = run(defined("Cards")["Cards"])
    dealers = {row.values[0]: row.task for row in result.received["dealer"]}
    assert dealers == {card: min(dealers.values()) + card % 2 for card in range(12)}
    players = {row.values[0]: row.task for row in result.received["players"]}
    assert players == {card: min(players.values()) + card % 3 for card in range(12)}


def test_errors_and_dead_letters_come_out_where_they_should(capsys):
    names = defined("Import")
    result = run(names["Import"])
    assert result.state == "SUCCEEDED"
    assert result.inputs("good") == [("ann", 0.25)]
    assert [line for line, _ in result.inputs("bad")] == ["bob"]
    assert result.inputs("parse").count(("eve,0",)) == 3
    (comment,) = re.findall(r"print\(tup.*# (.*)", next(b for b in SHOWN if "Morgue" in b))
    assert capsys.readouterr().out.splitlines() == [comment]


def test_without_a_reader_of_dead_letters_the_topology_fails():
    names = defined("Import")

    class Unread(names["Import"]):
        morgue = None

    assert run(Unread).state == "FAILED"


def test_hooks_and_metrics_in_a_computed_topology(capsys):
    names = defined("Fan")
    counts = []
    names["Third"].close = lambda reader: counts.append(reader.seen.value)
    assert run(names["Fan"]).state == "SUCCEEDED"
    assert counts == [5, 5, 5]
    assert capsys.readouterr().out.splitlines() == ["failed: 2"] * 3
    assert names["Fan"].plan().config["topology.max.spout.pending"] == 100


def test_the_ten_groupings_are_listed():
    section = (ROOT / "docs" / "guide.md").read_text().split("\n## Groupings\n")[1].split("\n## ")[0]
    listed = set(re.findall(r"^\| `Grouping\.(\w+)", section, re.MULTILINE))
    assert listed == {name for name in vars(Grouping) if not name.startswith("_")} - {"LOWEST"}
    assert len(listed) == 10


def test_what_the_tables_name_is_there():
    class Keeps(Bolt):
        def initialize(self, config, context):
            objects["Configuration and context"] = context

        def process(self, tup):
            pass

    class Kept(Topology):
        rows = RowsSpout.of(["n"], [[1]]).spec()
        keeps = Keeps.spec(inputs=[rows])

    objects: dict[str, Any] = {"Spouts": Spout(), "Bolts": Bolt()}
    run(Kept)
    text = (ROOT / "docs" / "guide.md").read_text()
    for heading, owner in objects.items():
        section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
        cells = [line.split("|")[1] for line in section.splitlines() if re.match(r"\| `(?!context\.`)", line)]
        named = [name for cell in cells for name in re.findall(r"`(\w+)", cell)]
        assert len(named) > 8
        assert [name for name in named if not hasattr(owner, name)] == []


def test_the_options_of_spec_are_those_of_the_table():
    section = (ROOT / "docs" / "guide.md").read_text().split("\n## Specs\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`(\w+)=", cell)}
    assert named == set(inspect.signature(Bolt.spec).parameters) - {"name"}
