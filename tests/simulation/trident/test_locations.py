"""The example with a state of the author's own."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from ardea import loader
from ardea.testing import Cluster

EXAMPLE = Path(__file__).parents[3] / "examples" / "trident_locations.py"


def test_the_example_says_where_users_were(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / "ardea-locations"

    def append(name, *rows):
        file = folder / name / "1.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in rows)

    append("visits")
    append("moves", {"user": "ann", "location": "Rome"}, {"user": "ann", "location": "Oslo"})
    append("moves", {"user": "bob", "location": "Bonn"})
    seen = []

    def says(line):
        seen.extend(capsys.readouterr().out.splitlines())
        return line in seen

    with Cluster(loader.load(f"{EXAMPLE}:TridentLocations"), containers=2) as cluster:
        cluster.run_until(lambda: says("bob is in Bonn") and says("ann is in Oslo"))
        append("visits", {"user": "ann", "page": "/fish"}, {"user": "eve", "page": "/apples"})
        cluster.run_until(lambda: says("ann reads /fish in Oslo") and says("eve reads /apples in nobody knows where"))
        cluster.kill("b-0-0")
        append("moves", {"user": "ann", "location": "Kyiv"})
        cluster.run_until(lambda: says("ann is in Kyiv"))
        append("visits", {"user": "ann", "page": "/dates"})
        cluster.run_until(lambda: says("ann reads /dates in Kyiv"))
