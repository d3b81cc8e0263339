"""A task's look at its own threads: bounded, whatever they do, and gone when it is over."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager

import pytest

from ardea.heron_instance import sampling
from ardea.heron_instance.inspector import Inspector
from ardea.heron_instance.sampling import Sampler, Tree, stacks
from ardea.plan.physical import TaskPlan
from ardea.protocol.checked import MOST_INSPECTED
from ardea.protocol.inspection import as_text, unpack
from ardea.protocol.wire_pb2 import DEBUG, Inspect, Order, TaskReport

TASK = TaskPlan(3, "count", 0, 1)


def walk(node):
    yield node
    for child in node.children:
        yield from walk(child)


@contextmanager
def hot():
    """A thread that has one thing to do only."""
    begun, over = threading.Event(), threading.Event()

    def hot_loop():
        begun.set()
        while not over.is_set():
            sum(range(100))

    thread = threading.Thread(target=hot_loop, name="executor count-0")
    thread.start()
    try:
        assert begun.wait(60)  # a thread is started before it is in its function
        yield
    finally:
        over.set()
        thread.join()


def inside(depth, do):
    return do(sys._getframe()) if not depth else inside(depth - 1, do)


def test_the_hot_function_is_in_the_profile():
    found, usual = [], sys.getswitchinterval()
    with hot():
        sampler = Sampler(0.2, lambda *all_: found.append(all_))
        sampler.start()
        sampler._thread.join(30)
    ((tree, times, seconds),) = found
    assert (times > 0, seconds >= 0.2, sampler.busy) == (True, True, False)
    assert sys.getswitchinterval() == usual
    root = tree.document("count-0", seconds / times, 1)
    (executor,) = (thread for thread in root.children if thread.name == "executor count-0")
    assert executor.samples == times
    loop = next(node for node in walk(executor) if node.name.endswith("hot_loop"))
    assert (loop.samples > 0.9 * times, loop.file) == (True, __file__)
    assert "sampler" not in {thread.name for thread in root.children}
    assert root.samples == sum(thread.samples for thread in root.children)
    assert all(node.samples >= sum(child.samples for child in node.children) for node in walk(root))


def test_depth_and_size_are_bounded(monkeypatch):
    tree = Tree()
    inside(300, lambda frame: tree.add("t", frame))
    monkeypatch.setattr(sampling, "MOST_NODES", 150)
    for number in range(300):
        code = compile(f"def f{number}(tree): tree.add('t', __import__('sys')._getframe())", "<x>", "exec")
        names: dict = {}
        exec(code, names)
        names[f"f{number}"](tree)
    nodes = list(walk(tree.document("count-0", 0.01, 1)))
    assert len(nodes) <= 152
    assert tree.cut > 100
    assert tree.root.samples == 301


def test_stacks_are_of_all_threads():
    with hot():
        found = {thread.name: thread for thread in stacks()}
    assert found["gateway"].frames[-1].name == "threads"
    assert any(frame.name == "test_stacks_are_of_all_threads" for frame in found["gateway"].frames)
    assert any(frame.name.endswith("hot_loop") for frame in found["executor count-0"].frames)


def asked(inspector, what, seconds=0, target="count-0", request="x"):
    inspector.asked(Order(kind=DEBUG, target=target, inspect=Inspect(id=request, what=what, seconds=seconds)))


@pytest.fixture
def woken():
    return threading.Semaphore(0)


@pytest.fixture
def inspector(woken):
    return Inspector(TASK, 7, woken.release)


def reports(inspector):
    return [TaskReport.FromString(message.frames[0]) for message in inspector.ready]


def test_it_answers_with_its_stacks_at_once(inspector):
    asked(inspector, "stacks")
    (report,) = reports(inspector)
    assert (report.task, report.inspected.id, report.inspected.refused) == (3, "x", "")
    found = unpack(as_text(report.inspected.document))
    assert (found.what, found.task, found.container, found.life) == ("stacks", "count-0", 1, 7)
    assert found.threads


def test_what_is_for_another_task_is_not_its_business(inspector):
    asked(inspector, "stacks", target="count-1")
    assert not inspector.ready


@pytest.mark.parametrize(("what", "seconds"), [("profile", 0), ("profile", 61), ("\x00", 1)])
def test_it_refuses_what_it_cannot(inspector, what, seconds):
    asked(inspector, what, seconds)
    (report,) = reports(inspector)
    assert report.inspected.refused


def test_one_profile_at_a_time(inspector, woken):
    asked(inspector, "profile", 1)
    asked(inspector, "profile", 1)
    assert not inspector.ready, "asked for again, it goes on"
    asked(inspector, "profile", 1, request="y")
    (report,) = reports(inspector)
    assert (report.inspected.id, report.inspected.refused) == ("y", "another profile of it is under way")
    assert woken.acquire(timeout=30)
    assert woken.acquire(timeout=30)
    found = unpack(as_text(reports(inspector)[1].inspected.document))
    assert (found.what, found.seconds >= 1.0, found.root.name) == ("profile", True, "count-0")


def test_a_tree_without_room_loses_its_thin_branches(inspector, monkeypatch):
    """Names may be anything: they do not compress."""
    monkeypatch.setattr("ardea.protocol.inspection.MOST_INSPECTED", 2000)
    tree = Tree()
    for number in range(2000):
        names: dict = {}
        exec(f"def f{number * 2654435761 % 2**32:x}(do): do()", names)
        next(f for name, f in names.items() if name.startswith("f"))(lambda: tree.add("t", sys._getframe(1)))
    inspector._sampled("x", "now", tree, 2000, 1.0)
    (report,) = reports(inspector)
    assert len(report.inspected.document) <= 2000 < MOST_INSPECTED
    assert unpack(as_text(report.inspected.document)).root.samples == 2000
