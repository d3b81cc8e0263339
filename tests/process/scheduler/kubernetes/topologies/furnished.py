"""Its bolt's pods have an init container, whose file the bolt reads, and a sidecar, which says when there is enough."""

from __future__ import annotations

from pathlib import Path

from ardea import Bolt, Spout, Topology
from scheduler import await_next  # noqa: TID251 -- the author's own, beside this file

GIVEN = Path("/given")
MOUNT = {"name": "given", "mountPath": str(GIVEN)}
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
BEATS = "trap 'exit 0' TERM; while true; do touch /given/beat; sleep 1 & wait $!; done"


class Ticks(Spout):
    outputs = ["number"]

    def initialize(self, config, context):
        self.next = 0

    def next_tuple(self):
        if (GIVEN / "enough").exists():
            self.finish()
            return
        await_next()
        self.emit([self.next], tup_id=self.next)
        self.next += 1


class Reads(Bolt):
    config = {
        "heron.kubernetes.pod.spec": {
            "initContainers": [
                {
                    "name": "fetch",
                    "command": ["sh", "-c", "echo fetches; echo water > /given/word"],
                    "volumeMounts": [MOUNT],
                    "securityContext": RESTRICTED,
                },
                {
                    "name": "beats",
                    "restartPolicy": "Always",
                    "command": ["sh", "-c", BEATS],
                    "startupProbe": {"exec": {"command": ["test", "-e", "/given/beat"]}, "periodSeconds": 1},
                    "volumeMounts": [MOUNT],
                    "securityContext": RESTRICTED,
                },
            ],
            "containers": [{"name": "reads", "securityContext": {"readOnlyRootFilesystem": False}}],
        },
    }

    def initialize(self, config, context):
        self.word = (GIVEN / "word").read_text().strip()
        assert (GIVEN / "beat").exists(), "the sidecar has started before the tasks"

    def process(self, tup):
        pass

    def end_of_input(self):
        self.logger.info("the word is %s", self.word)


class Furnished(Topology):
    ticks = Ticks.spec()
    reads = Reads.spec(inputs=[ticks])
    config = {"heron.topology.master.replicas": 1, "heron.kubernetes.volumes": [{**MOUNT, "emptyDir": {}}]}
