"""`ardea.run` in a script, and in a notebook whose kernel nbclient starts: real processes, and a result."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from tests.machine import patient

pytestmark = pytest.mark.cluster
TOPOLOGY = """\
import threading
from ardea import Bolt, Grouping, Spout, Topology, TopologyBuilder
import ardea

WORDS = "the heron waits the heron strikes".split()

class Words(Spout):
    outputs = ["word"]

    def next_tuple(self):
        for number, word in enumerate(WORDS):
            self.emit([word], tup_id=number)
        self.finish()

class Count(Bolt):
    def initialize(self, config, context):
        self.count = 0

    def process(self, tup):
        if tup["word"] == config_of(self):
            raise ValueError("no such word")
        self.count += 1

    def end_of_input(self):
        print("words:", self.count)

def config_of(bolt):
    return bolt.config.get("bad.word")

class WordCount(Topology):
    words = Words.spec()
    count = Count.spec(inputs=[words])
"""
RUN = """\
result = ardea.run({topology}, containers=2, logs=["count"], state={state!r}, {more})
print(type(result).__name__, result.state, result.components["count"]["executed"], result.logs("count:0")[-2:-1])
"""


def script(tmp_path, text):
    """Its exit code, stdout and stderr."""
    file = tmp_path / "wc.py"
    file.write_text(text)
    environment = {**os.environ, "TERM": "dumb"}
    ended = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, check=False, timeout=patient(200), env=environment
    )
    return ended.returncode, ended.stdout, ended.stderr


def guarded(lines):
    return 'if __name__ == "__main__":\n' + "".join(f"    {line}\n" for line in lines.splitlines())


def called(tmp_path, topology="WordCount", more=""):
    return RUN.format(topology=topology, state=str(tmp_path / "state"), more=more)


def test_a_script(tmp_path):
    code, out, err = script(tmp_path, TOPOLOGY + guarded(called(tmp_path)))
    assert (code, out) == (0, "words: 6\nRunResult SUCCEEDED 6 ['words: 6']\n"), err
    assert "WordCount SUCCEEDED" in err


def test_one_that_fails_says_why_and_raises_only_when_asked(tmp_path):
    more = 'config={"bad.word": "waits"}, give_up=1'
    calls = called(tmp_path, more=more) + "print(result.reason)\nresult.raise_for_state()\n"
    code, out, err = script(tmp_path, TOPOLOGY.replace("if tup", "if True or tup") + guarded(calls))
    assert code == 1, out + err
    assert "RunResult FAILED" in out
    assert "ValueError: no such word" in out
    assert "ardea.errors.RunFailed: WordCount FAILED: " in err


MISTAKES = {
    "{run}": "wc.py calls ardea.run() while it is imported, which each process of a topology does",
    "def f():\n    class Inner(WordCount): pass\n    return Inner\n{guard}    ardea.run(f())\n": (
        "no file has f.<locals>.Inner in a variable"
    ),
    "{guard}    ardea.run(Words)\n": "ardea.run() takes a topology's class, not <class '__main__.Words'>",
    "{guard}    ardea.run(WordCount, containers=0)\n": "topology.stmgrs",
    "{guard}    ardea.run(WordCount, logs=['cuont'])\n": "ardea.run(): logs= cuont: WordCount has no such component",
}


@pytest.mark.parametrize(("text", "says"), MISTAKES.items())
def test_what_cannot_be_run_says_what_to_do(tmp_path, text, says):
    code, out, err = script(tmp_path, TOPOLOGY + text.format(run=called(tmp_path), guard=guarded("")))
    assert (code, out) == (1, "")
    assert says in err


def test_a_notebook(tmp_path):
    """Classes, functions and values of several cells reach the processes; a builder's topology, too."""
    head, bolt, tail = TOPOLOGY.partition("class Count")
    built = "builder = TopologyBuilder('Built')\nwords = builder.add_spout('words', Words)\n"
    built += "builder.add_bolt('count', Count, inputs=[words])\nBuilt = builder.build()\n"
    cells = [head, bolt + tail, called(tmp_path), built + called(tmp_path, "Built"), "lock = threading.Lock()"]
    cells += ["class Locked(WordCount):\n    lock = lock\n" + called(tmp_path, "Locked")]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(
        book, timeout=int(patient(200)), iopub_timeout=int(patient(60)), kernel_name="python3", allow_errors=True
    )
    client.execute(cwd=str(tmp_path))
    printed = ["".join(o.text for o in cell.outputs if o.get("name") == "stdout") for cell in book.cells]
    assert printed[2:4] == ["words: 6\nRunResult SUCCEEDED 6 ['words: 6']\n"] * 2, json.dumps(book.cells[2].outputs)
    (error,) = (output for output in book.cells[5].outputs if output.output_type == "error")
    assert error.ename == "UserError"
    assert "Locked cannot be sent to its processes: TypeError: cannot pickle '_thread.lock' object" in error.evalue
