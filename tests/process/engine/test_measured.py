"""What a real Prometheus reads of a running topology, and how much memory each process takes."""

from __future__ import annotations

import math
from statistics import median

import pytest

from tests.process.engine.running import Running
from tests.process.metrics_manager.prometheus import Prometheus, local
from tests.sizes import SOAK, size

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

MIB = 1 << 20


@pytest.mark.prometheus
def test_prometheus_sees_a_word_count_and_its_users_metrics(tmp_path, prometheus_binary):
    with Running("measured.py:WordCount", tmp_path) as topology:
        topology.running()
        server = Prometheus(prometheus_binary, tmp_path, local(*(topology.port(n) for n in (0, 1, 2))))
        try:
            watch(topology, server)
        finally:
            server.close()
        topology.raise_flag("enough")
        outcome = topology.finish()
    [emitted] = topology.left("lines")
    counts: dict[str, int] = {}
    for task in topology.left("count"):
        counts.update(task)
    assert counts == dict.fromkeys(topology.module.LINE.split(), emitted)
    assert outcome.components["lines"].acked == emitted


def watch(topology: Running, server: Prometheus) -> None:
    def wait(query, condition):
        """Prometheus is asked by the step, so that the run is kept meanwhile."""
        return server.wait(query, lambda answer: (topology.run.step(), condition(answer))[1])

    def four_words_a_line(rates):
        """Not before all containers have been scraped twice."""
        lines, words = rates.get(("split",)), rates.get(("count",))
        return lines and words and words / lines == pytest.approx(4, rel=0.5)

    wait("sum by (component) (rate(ardea_instance_tuples_executed_total[5s]))", four_words_a_line)
    for q, histogram in (
        (0.5, "ardea_spout_complete_latency_seconds"),
        (0.99, "ardea_spout_complete_latency_seconds"),
        (0.99, "ardea_instance_execute_duration_seconds"),
    ):
        query = f"histogram_quantile({q}, sum by (le) (rate({histogram}_bucket[5s])))"
        [value] = wait(query, lambda answer: answer and not math.isnan(next(iter(answer.values())))).values()
        assert 0 < value < 10
    capacity = "max(ardea_queue_capacity{{queue='data_in', component='{}'}})".format
    assert wait(f"{capacity('count')} > {capacity('lines')}", bool), "a queue follows what its reader can take"
    assert wait("sum(ardea_stmgr_links{state='up'})", lambda answer: answer.get(()) == 2)
    wait("up", lambda answer: set(answer.values()) == {1})

    assert set(wait("ardea_user_value{metric='length'}", bool).values()) == {4}, "the mean since the last snapshot"

    topology.raise_flag("pause")
    topology.until(lambda: topology.total("pending", "lines") == 0, "all lines are counted")
    [emitted] = wait(
        "sum(ardea_instance_tuples_emitted_total{component='lines'}) == "
        "sum(ardea_instance_tuples_acked_total{component='lines'})",
        bool,
    ).values()
    for query, factor in (
        ("sum(ardea_instance_tuples_executed_total{component='split'})", 1),
        ("sum(ardea_instance_tuples_executed_total{component='count'})", 4),
        ("sum(ardea_user_counts_total{metric='lines'})", 1),
        ("sum(ardea_user_counts_total{metric='words', key='heron'})", 1),
        ("sum(ardea_spout_complete_latency_seconds_count)", 1),
    ):
        wait(query, lambda answer, factor=factor: answer.get(()) == factor * emitted)


class Memory:
    """The resident memory of every process: what it ever took, and by the quarter of the tuples executed so far."""

    def __init__(self, topology: Running, component: str, total: int) -> None:
        self.topology, self.component, self.total = topology, component, total
        self.seen: dict[str, list[list[int]]] = {}

    def look(self) -> None:
        quarter = min(3, 4 * self.topology.total("executed", self.component) // self.total)
        for name, resident in self.topology.resident().items():
            self.seen.setdefault(name, [[], [], [], []])[quarter].append(resident)

    def check(self, bound: int) -> None:
        """Every process stayed below ``bound``; in a long run, what it usually takes grows by less than a tenth.

        Usually: the median of a quarter.  How much waits in its queues, which are bounded, comes and goes.
        """
        peaks = {name: max(map(max, filter(None, quarters))) for name, quarters in self.seen.items()}
        print({name: f"{peak / MIB:.0f} MiB" for name, peak in sorted(peaks.items())})
        assert {name: peak // MIB for name, peak in peaks.items() if peak > bound} == {}
        if SOAK:
            usual = {name: [median(q) / MIB for q in quarters[1:]] for name, quarters in self.seen.items()}
            print({name: " ".join(f"{mib:.1f}" for mib in quarters) for name, quarters in sorted(usual.items())})
            assert {name: quarters for name, quarters in usual.items() if quarters[-1] > 1.1 * quarters[0]} == {}


@pytest.mark.thorough
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_at_most_once_words_leave_no_process_bigger(tmp_path):
    words = size(2_000_000, 100_000_000)
    with Running("measured.py:AtMostOnce", tmp_path, {"test.words": words}) as topology:
        memory = Memory(topology, "count", words)
        topology.finish(size(60, 3000), memory.look)
    assert sum(topology.left("count")) == words
    memory.check(100 * MIB)


@pytest.mark.thorough
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_flat_map_in_front_of_a_slow_bolt_takes_bounded_memory(tmp_path):
    """Each input becomes ten megabytes, and the reader takes a third of a second for it."""
    numbers = size(20, 3000)
    with Running("measured.py:Flood", tmp_path, {"test.numbers": numbers}) as topology:
        memory = Memory(topology, "slow", numbers * 10_000)
        topology.finish(size(60, 3000), memory.look)
    assert topology.left("slow") == [numbers * 10_000]
    memory.check(160 * MIB)
