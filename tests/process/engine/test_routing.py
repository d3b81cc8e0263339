"""Which way frames take: the local short cut, one crossing of one link, and as many links as containers need."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product

import pytest

from tests.process.engine.running import Running, tcp_connections
from tests.sizes import size

pytestmark = pytest.mark.cluster

NAMES = ("source", "bolt1", "bolt2", "bolt3")
CONNECTIONS = 2 * 2 * 3 + 1  # of a manager of four: two lanes to and from each of three peers, and one to the master


def test_frames_for_the_same_container_cross_no_link_and_others_one_once(tmp_path):
    """Seed 000's example: two containers, Bolt1, Bolt2 and Bolt3 with two tasks each, one of each in each container."""
    with Running("routing.py:ThreeBolts", tmp_path) as topology:
        rows, row_bytes = topology.module.ROWS, topology.module.ROW_BYTES
        place = {i.task: topology.packing.container_of(i.task) for i in topology.packing.instances}
        tasks = {name: [i.task for i in topology.packing.instances if i.component == name] for name in NAMES}
        for bolt in NAMES[1:]:
            assert {place[task] for task in tasks[bolt]} == {1, 2}
        # Rows that each task emits to each task of the next component; how many cross from container to container.
        crossing: Counter[tuple[int, int]] = Counter()
        emitted = rows
        for sender, reader in pairwise(NAMES):
            for a, b in product(tasks[sender], tasks[reader]):
                crossing[place[a], place[b]] += emitted
            emitted *= len(tasks[sender])
        local = crossing[1, 1] + crossing[2, 2]

        def crossed(container, direction, peer):
            return topology.metrics(container, "ardea_stmgr_bytes_total").get((direction, f"manager-{peer}"), 0.0)

        topology.running()
        topology.until(
            lambda: all(
                topology.total("acked", "source") == 2 * rows
                # Each manager tells of its own end, at its own time.
                and min(crossed(b, "in", a), crossed(a, "out", b)) >= crossing[a, b] * row_bytes
                for a, b in ((1, 2), (2, 1))
            ),
            "all rows have come",
        )
        for here, there in ((1, 2), (2, 1)):
            sent = crossed(here, "out", there)
            expected = crossing[here, there] * row_bytes
            assert expected <= sent < expected + 0.02 * expected + row_bytes / 2, (
                f"container {here} sent {sent / row_bytes:.2f} rows to {there}, {crossing[here, there]} cross"
            )
        assert local > 0
        topology.raise_flag("enough")
        topology.finish()
    for position, bolt in enumerate(NAMES[1:]):
        assert topology.left(bolt) == [rows * 2**position] * 2, "every row arrived intact"


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_links_grow_with_containers_not_with_instances(tmp_path):
    """Four managers hold the same number of connections with 8 and with 16 (soak: 40) instances."""
    for instances in (8, size(16, 40)):
        folder = tmp_path / str(instances)
        folder.mkdir()
        parallelism = {"topology.max.task.parallelism": instances // 2}
        with Running("routing.py:Mesh", folder, parallelism) as topology:
            assert len(topology.packing.instances) == instances
            topology.running()
            tuples = 100 * instances // 2
            topology.until(lambda n=tuples: topology.total("acked", "numbers") == n, "all tuples crossed the mesh")
            for container in (1, 2, 3, 4):
                topology.until(
                    lambda container=container: (
                        topology.metrics(container, "ardea_stmgr_links") == {("up",): 3.0, ("down",): 0.0}
                    ),
                    f"the links of container {container} are up, and no other",
                )
            pids = [topology.pid(f"container-{n}/stream-manager") for n in (1, 2, 3, 4)]
            # A connection that was dialled anew, on a busy machine, is there beside its successor for a moment.
            topology.until(
                lambda pids=pids: [tcp_connections(pid) for pid in pids] == [CONNECTIONS] * 4,
                f"each manager holds {CONNECTIONS} connections",
            )
            topology.raise_flag("enough")
            topology.finish()
