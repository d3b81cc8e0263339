"""What the local scheduler hands to the supervisors."""

from __future__ import annotations

import json

from ardea.scheduler.local_processes import LocalProcesses
from ardea.scheduler.submission import Submission

FILE = """
from ardea import Bolt, Spout, Topology

class Words(Spout):
    outputs = ["word"]

    def next_tuple(self):
        self.finish()

class Count(Bolt):
    def process(self, tup):
        pass

class Sized(Topology):
    words = Words.spec(par=3, ram="5GB")
    count = Count.spec(inputs=[words], ram="10GB")
"""
GB = 1000**3


def test_each_instance_has_the_memory_that_its_component_asks_for_and_nobody_elses(tmp_path):
    """Seed 001: three spouts of 5 GB and a bolt of 10 GB take 25 GB, in however many containers."""
    file = tmp_path / "sized.py"
    file.write_text(FILE)
    submission = Submission.of(str(file), {"topology.stmgrs": 2}, f"file://{tmp_path}/state")
    LocalProcesses(submission.definition, tmp_path / "run").prepare()
    specs = [json.loads(spec.read_text()) for spec in sorted((tmp_path / "run").glob("container-[12]/spec.json"))]
    ram = {p["name"]: p["ram"] for spec in specs for p in spec["processes"] if p["name"].startswith(("words", "count"))}
    assert ram == {"words-0": 5 * GB, "words-1": 5 * GB, "words-2": 5 * GB, "count-0": 10 * GB}
    assert sum(ram.values()) == 25 * GB


def test_each_process_may_keep_as_many_cores_busy_as_it_was_given(tmp_path):
    """Array libraries would else start a thread for each core of the machine in each process."""
    file = tmp_path / "sized.py"
    file.write_text(FILE)
    config = {"topology.component.cpumap": {"words": 0.5, "count": 2.5}}
    submission = Submission.of(str(file), config, f"file://{tmp_path}/state")
    LocalProcesses(submission.definition, tmp_path / "run").prepare()
    specs = [json.loads(spec.read_text()) for spec in sorted((tmp_path / "run").rglob("spec.json"))]
    cores = {p["name"]: p["cores"] for spec in specs for p in spec["processes"]}
    assert (cores.pop("container-0"), cores.pop("container-1")) == (None, None)  # their own processes are told
    assert cores.pop("count-0") == 3
    assert cores == dict.fromkeys(
        ("topology-master", "metrics-manager", "stream-manager", "words-0", "words-1", "words-2"), 1
    )
