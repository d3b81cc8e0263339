"""Storm's TridentTest on real processes: words of a file are counted, and asked for over HTTP meanwhile."""

from __future__ import annotations

import json
import re
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

import pytest

from ardea.drpc import DrpcClient, published_path
from ardea.errors import ArdeaError
from ardea.state import FileState
from tests.machine import patient
from tests.process.patience import PatientTopology

pytestmark = [pytest.mark.thorough, pytest.mark.cluster]

SOURCE = """
from pathlib import Path

from ardea.trident import Count, DirectorySpout, MapGet, MemoryMapState, Sum, TridentTopology


def fragile(tup):
    if tup["args"] == "bad":
        raise ValueError(tup["args"])
    return tup["args"] + "!!!"


sentences = DirectorySpout.transactional(Path(__file__).parent / "in", field="sentence", follow=True)
topology = TridentTopology("Storms")
topology.set_config({"topology.trident.batch.emit.interval.millis": 20})
counts = (
    topology.new_stream("tester", sentences)
    .each("sentence", lambda tup: tup[0].split(), "word")
    .group_by("word")
    .persistent_aggregate(MemoryMapState(), Count(), "count")
    .parallelism_hint(6)
)
(
    topology.new_drpc_stream("words")
    .each("args", lambda tup: tup[0].split(), "word")
    .group_by("word")
    .state_query(counts, "word", MapGet(), "count")
    .aggregate(Sum(), "sum", "count")
    .project("sum")
)
topology.new_drpc_stream("fragile").map(fragile, "x")
Storms = topology.build()
"""


def http(state, method, function, args):
    """(status, document) of a call of any HTTP client."""
    with FileState(state) as manager:
        url = json.loads(manager.get(published_path("Storms", function)).data)
    path, body = (f"/drpc/{function}", args) if method == "POST" else (f"/drpc/{function}/{quote(args)}", None)
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=patient(20))) as connection:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def test_words_are_counted_and_asked_for(tmp_path):
    """Sentences and answers are Storm's; what raises reaches who asked, and nobody else."""
    (tmp_path / "in").mkdir()
    (tmp_path / "storms.py").write_text(SOURCE)
    state = tmp_path / "ardea" / "state"

    def feed(*sentences):
        with (tmp_path / "in" / "sentences.txt").open("a") as file:
            file.write("".join(f"{sentence}\n" for sentence in sentences))

    def ask(words):
        return DrpcClient.find(str(state), "Storms", "words").execute("words", words, 20)

    def counted(words, number):
        def answer():
            try:
                return ask(words) == [[number]]
            except ArdeaError:
                return None  # who is asked has just begun

        topology.until(answer, f"{words}: {number}", 60)

    with PatientTopology(f"{tmp_path / 'storms.py'}:Storms", tmp_path) as topology:
        topology.ready()
        feed("hello the man said", "the")
        counted("the", 2)
        assert ask("hello") == [[1]]
        feed("the man on the moon", "where are you")
        counted("man where you the", 8)
        assert (ask("the"), ask("man")) == ([[4]], [[2]])
        for method in ("POST", "GET"):
            assert http(state, method, "words", "man where you the") == (200, [[8]])
            status, error = http(state, method, "fragile", "bad")
            assert (status, error["type"]) == (500, "FAILED_REQUEST")
            assert re.fullmatch(r"b-\d-0: .* at storms\.py:\d+", error["error"]), error
            assert http(state, method, "fragile", "a b") == (200, [["a b!!!"]])
