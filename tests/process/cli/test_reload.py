"""`ardea run --reload`, as somebody who writes a topology has it run beside the editor."""

from __future__ import annotations

import signal
import threading

import pytest

from tests.process.waiting import eventually

pytestmark = pytest.mark.cluster
TOPOLOGY = """\
from ardea import Bolt, Spout, Topology
from words import WORDS

class Words(Spout):
    outputs = ["word"]
    said = False

    def next_tuple(self):
        for number, word in enumerate([] if self.said else WORDS):
            self.emit([word], tup_id=number)
        self.said = True
        if {ends}:
            self.finish()

class Print(Bolt):
    def process(self, tup):
        print("{said}", tup["word"])

class T(Topology):
    words = Words.spec()
    printed = Print.spec(inputs=[words])
"""


@pytest.fixture
def run(start, tmp_path):
    """What stdout and stderr of it say, as they come; and the process."""
    file = tmp_path / "topology.py"
    (tmp_path / "words.py").write_text('WORDS = ["heron"]')
    file.write_text(TOPOLOGY.format(ends=True, said="first:"))
    process = start("run", file, "--reload", "--logs", "printed")
    said = {"out": "", "err": ""}

    def read(stream, name):
        for line in stream:
            said[name] += line

    readers = [threading.Thread(target=read, args=(getattr(process, f"std{name}"), name)) for name in said]
    for reader in readers:
        reader.start()
    yield file, said, process
    process.kill()
    for reader in readers:
        reader.join()


def test_it_starts_anew_at_each_change_and_ends_with_ctrl_c(run):
    file, said, process = run

    def prints(text):
        eventually(lambda: text in said["out"], 120, lambda: f"{text!r} is printed: {said}")

    prints("first: heron\n")
    eventually(lambda: "waits for a change of its files" in said["err"], 120, lambda: str(said))
    (file.parent / "words.py").write_text('WORDS = ["fish"]')
    prints("first: fish\n")
    file.write_text(TOPOLOGY.format(ends=True, said="second:") + "x = (\n")
    eventually(lambda: "SyntaxError" in said["err"], 120, lambda: str(said))
    file.write_text(TOPOLOGY.format(ends=False, said="second:"))  # this one does not end
    prints("second: fish\n")
    file.write_text(TOPOLOGY.format(ends=False, said="third:"))
    prints("third: fish\n")
    assert "a file has changed: the topology starts again" in said["err"]
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130


@pytest.mark.parametrize("option", [("--dry-run",), ("-o", "json")])
def test_what_makes_no_sense_beside_it_is_refused(ardea, tmp_path, option):
    refused = ardea("run", tmp_path / "none.py", "--reload", *option)
    assert refused.returncode == 2
    assert "--reload runs until Ctrl-C" in refused.stderr
