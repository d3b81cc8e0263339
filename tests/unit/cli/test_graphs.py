"""Plans as Mermaid and DOT: what both languages would trip over is escaped."""

from __future__ import annotations

from ardea.cli.graphs import dot, mermaid

PLAN = [
    {"component": "words", "kind": "spout", "tasks": 1, "operations": [], "inputs": {}},
    {
        "component": "b-1:end",
        "kind": "bolt",
        "tasks": 2,
        "operations": ['each "a" -> <b> # \\ & c'],
        "inputs": {"words:default": "fields(word)", "words:late": "all"},
    },
    {"component": "last", "kind": "bolt", "tasks": 1, "operations": [], "inputs": {"b-1:end:default": "shuffle"}},
]


def test_mermaid():
    assert mermaid(PLAN).splitlines() == [
        "flowchart LR",
        '    n0(["words<br/>1 task"])',
        '    n1["b-1:end<br/>2 tasks<br/>each #quot;a#quot; -#gt; #lt;b#gt; #35; \\ #amp; c"]',
        '    n2["last<br/>1 task"]',
        '    n0 -->|"fields(word)"| n1',
        '    n0 -->|"late: all"| n1',
        '    n1 -->|"shuffle"| n2',
    ]


def test_dot():
    assert dot(PLAN).splitlines() == [
        "digraph topology {",
        "    rankdir=LR",
        '    n0 [shape=ellipse, label="words\\n1 task"]',
        '    n1 [shape=box, label="b-1:end\\n2 tasks\\neach \\"a\\" -> <b> # \\\\ & c"]',
        '    n2 [shape=box, label="last\\n1 task"]',
        '    n0 -> n1 [label="fields(word)"]',
        '    n0 -> n1 [label="late: all"]',
        '    n1 -> n2 [label="shuffle"]',
        "}",
    ]
