"""Every name fits Kubernetes, and different things have different names."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ardea.plan.packing import InstancePlan
from ardea.plan.resource import Resource
from ardea.scheduler.kubernetes import names

DNS = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)?[A-Za-z0-9]")
TOPOLOGIES = st.from_regex(r"[A-Za-z_][\w.$-]{0,180}", fullmatch=True)


def instances(*components):
    return tuple(InstancePlan(n, name, 0, n, Resource()) for n, name in enumerate(components, 1))


def test_a_person_can_type_them():
    assert names.root("WordCount") == "wordcount"
    assert names.master_job("wordcount", 1) == "wordcount-master-1"
    assert names.container_job("wordcount", 12) == "wordcount-container-12"
    assert names.instance_names(instances("count", "split_up")) == {1: "count-0", 2: "split-up-0"}


@given(TOPOLOGIES)
def test_names_of_jobs_are_names_of_kubernetes(topology):
    for name in (names.container_job(names.root(topology), 99_999), names.secret(names.root(topology))):
        assert DNS.fullmatch(name)
        assert len(name) <= 63


@given(TOPOLOGIES)
def test_labels_are_values_of_labels(topology):
    for value in names.labels(f"{topology}-0123abcd", names.WORKER, 3).values():
        assert LABEL.fullmatch(value)
        assert len(value) <= 63


@given(TOPOLOGIES, TOPOLOGIES)
def test_long_names_that_differ_stay_different(one, other):
    if one != other:
        assert names.label(one) != names.label(other)


def test_long_names_do_not_fall_together():
    assert names.root("a" * 100) != names.root("a" * 99 + "b")
    assert names.root("Ärger") != names.root("ärger!")


@given(st.lists(st.from_regex(r"[$A-Za-z_]\w{0,80}", fullmatch=True), min_size=1, max_size=8))
def test_the_containers_of_a_pod_have_names_of_their_own(components):
    called = names.instance_names(instances(*components))
    assert len(set(called.values())) == len(components)
    assert all(DNS.fullmatch(name) and len(name) <= 63 for name in called.values())
