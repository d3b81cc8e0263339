"""Logs of pods are followed for as long as the topology runs, whatever becomes of pods and connections."""

from __future__ import annotations

import threading
from itertools import count, islice
from queue import SimpleQueue

import pytest
from urllib3.exceptions import ProtocolError

from ardea.errors import NotFound, Unreachable, UserError
from ardea.scheduler.kubernetes import logs as module
from ardea.scheduler.kubernetes import pods
from ardea.scheduler.kubernetes.client import LogStream
from ardea.scheduler.kubernetes.logs import PodLogs
from ardea.scheduler.kubernetes.objects import RootStatus
from ardea.scheduler.kubernetes.root_object import write_status
from ardea.scheduler.kubernetes.submission import submit
from ardea.scheduler.kubernetes.topologies import find
from ardea.scheduler.kubernetes.waiting import BORNE_FOR

LOOKS = 400
"""How often it is looked for a line that has to come."""


BROKEN = Unreachable("the log breaks off")


class Stream(SimpleQueue):
    """What was printed, then what is printed; None ends it, and an error, too."""

    def __iter__(self):
        for line in iter(self.get, None):
            if line is BROKEN:
                raise line
            yield line

    def close(self):
        self.put(None)


class Place:
    """A topology and its pods; ``printed``: by pod and container, what a container that has begun has printed."""

    def __init__(self, cluster, prepared):
        self.cluster, self.prepared, self.printed, self.streams, self.opened = cluster, prepared, {}, {}, []
        self.end = {}  # of streams that are not followed, by pod
        self.lost, self.refused = set(), []  # pods whose node does not answer, and whose log was asked for
        submit(cluster, prepared)
        cluster.logs = self.open

    def open(self, pod, container, *, follow=False, tail=None, since=None, after=""):
        if pod in self.lost:
            self.refused.append((pod, container))
            raise Unreachable("dial tcp 10.0.0.5:10250: no route to host (HTTP 500)")
        if (pod, container) not in self.printed:
            raise UserError("container is waiting to start: PodInitializing")
        self.opened.append((pod, container, tail, since, after))
        lines = [line for line in self.printed[pod, container] if line[0][:19] >= after[:19]]
        stream = self.streams[pod, container] = Stream()
        for stamp, text in lines[-tail:] if tail else lines if tail is None else ():
            stream.put(f"{stamp} {text}".encode() if follow else text.encode())
        if not follow:
            stream.put(self.end.get(pod))
        return stream

    def made(self, job="sums-container-1", name="x"):
        """A pod of that Job, which has not begun."""
        (manifest,) = (j for j in pods.jobs(self.prepared.inputs, None) if j["metadata"]["name"] == job)
        template = manifest["spec"]["template"]
        metadata = {**template["metadata"], "name": f"{job}-{name}"}
        metadata["labels"] |= {"batch.kubernetes.io/job-name": job}
        self.cluster.apply({"kind": "Pod", "metadata": metadata, "spec": template["spec"], "status": {}})
        return metadata["name"]

    def begins(self, pod, container="adds-up-0"):
        self.printed[pod, container] = []
        status = {"name": container, "state": {"running": {}}}
        self.cluster.patch("Pod", pod, {"status": {"containerStatuses": [status]}})

    def prints(self, text, pod="sums-container-1-x", container="adds-up-0", second=0, nano=0):
        line = f"2026-01-01T00:00:{second:02}.{nano:09}Z", text
        self.printed[pod, container].append(line)
        if (pod, container) in self.streams:
            self.streams[pod, container].put(" ".join(line).encode())

    def breaks(self, pod="sums-container-1-x", container="adds-up-0", how=None):
        self.streams.pop((pod, container)).put(how)

    def ends(self):
        root = self.cluster.find("ConfigMap", "sums")
        write_status(self.cluster, root, RootStatus(state="SUCCEEDED", came_up=True))

    def follows(self, selection=None, **options):
        """What is followed; all logs are open that have begun."""
        found = PodLogs(self.cluster, find(self.cluster, "Sums"), clock=count().__next__)
        lines = found.lines(selection, follow=True, **options)
        assert next(lines) is None
        return lines


def after(lines, most=LOOKS):
    """The next line."""
    return next((line.text for line in islice(lines, most) if line is not None), None)


def looked(lines):
    """As often as it takes to look for logs that have begun; nothing is printed."""
    assert after(lines, 10) is None


@pytest.fixture
def place(cluster, prepared, monkeypatch):
    monkeypatch.setattr(module, "LOOK_EVERY", 0.01)
    return Place(cluster, prepared())


@pytest.mark.parametrize("selection", [None, "adds_up", "adds_up:0"])
def test_what_has_not_begun_is_followed_once_it_does(place, selection):
    lines = place.follows(selection, tail=0)
    looked(lines)
    pod = place.made()
    looked(lines)
    place.begins(pod)
    place.prints("first")
    assert after(lines) == "first"
    assert place.opened == [(pod, "adds-up-0", None, None, "")], "of a log that is begun now all is new"
    place.prints("second")
    assert after(lines) == "second"


def test_a_pod_that_replaces_another_is_followed(place):
    place.begins(place.made())
    lines = place.follows()
    place.breaks()
    place.cluster.delete("Pod", "sums-container-1-x")
    pod = place.made(name="y")
    place.begins(pod)
    place.prints("again", pod)
    assert after(lines) == "again"


def test_a_stream_that_breaks_is_opened_again_and_no_line_comes_twice(place):
    """A container engine may give several lines one time."""
    place.begins(place.made())
    place.prints("long ago")
    lines = place.follows(tail=0)
    for text in ("a", "b", "c"):
        place.prints(text, second=7, nano=8 if text == "a" else 9)
        assert after(lines) == text
    place.breaks()
    place.prints("d", second=7, nano=9)
    place.prints("e", second=8)
    assert [after(lines), after(lines)] == ["d", "e"]
    place.breaks()
    place.prints("f", second=8)
    assert after(lines) == "f"
    looked(lines)
    assert [asked[4] for asked in place.opened] == [
        "",
        "2026-01-01T00:00:07.000000009Z",
        "2026-01-01T00:00:08.000000000Z",
    ]


def test_one_that_breaks_before_a_line_has_come_is_read_from_where_it_was_opened(place):
    place.begins(place.made())
    lines = place.follows(tail=0)
    place.breaks()
    place.prints("meanwhile")
    assert after(lines) == "meanwhile"
    _, (_, _, tail, since, stamp) = place.opened
    assert (tail, stamp) == (None, "")
    assert since >= module.SOURCES_EVERY


def test_it_ends_with_the_topology_when_all_is_read(place):
    place.begins(place.made())
    lines = place.follows()
    place.ends()
    looked(lines)
    place.prints("the last words")
    place.breaks()
    assert [line.text for line in islice(lines, LOOKS) if line is not None] == ["the last words"]
    assert next(lines, "over") == "over"


def test_a_log_that_does_not_end_with_the_topology_is_left(place):
    """Its node is lost."""
    place.begins(place.made())
    lines = place.follows()
    place.ends()
    assert len(list(islice(lines, LOOKS))) < LOOKS


def test_lines_that_still_come_after_the_end_are_shown_to_the_last(place):
    """However long who prints them waits with each."""
    now = [0.0]
    place.begins(place.made())
    found = PodLogs(place.cluster, find(place.cluster, "Sums"), clock=lambda: now[0])
    lines = found.lines(follow=True)
    assert [next(lines), next(lines)] == [None, None]
    place.ends()
    now[0] += module.SOURCES_EVERY
    assert next(lines) is None
    place.prints("first")
    assert after(lines) == "first"
    place.prints("second")
    place.prints("third")
    place.breaks()
    shown = []
    for line in islice(lines, LOOKS):
        if line is not None:
            shown.append(line.text)
            now[0] += module.ENDS_WITHIN + 1
    assert shown == ["second", "third"]


def test_a_pod_that_has_ended_is_read_once_more(place):
    pod = place.made()
    place.begins(pod)
    lines = place.follows()
    place.breaks()
    place.prints("while it was broken")
    place.cluster.patch("Pod", pod, {"status": {"phase": "Succeeded"}})
    assert after(lines) == "while it was broken"
    place.breaks()
    looked(lines)
    assert len(place.opened) == 2


def test_one_that_breaks_after_the_end_is_opened_again(place):
    pod = place.made()
    place.begins(pod)
    lines = place.follows()
    place.cluster.patch("Pod", pod, {"status": {"phase": "Succeeded"}})
    place.ends()
    looked(lines)
    for text in ("most of it", "and the rest"):
        place.breaks(how=BROKEN)
        place.prints(text)
        assert after(lines) == text
    place.breaks()
    assert list(filter(None, islice(lines, LOOKS))) == []
    assert len(place.opened) == 3


def test_a_log_that_prints_faster_than_it_is_shown_waits(place, monkeypatch):
    monkeypatch.setattr(module, "WAITING", 4)
    place.begins(place.made())
    lines = place.follows()
    for number in range(20):
        place.prints(str(number))
    assert after(lines) == "0"
    (stream,) = place.streams.values()
    assert stream.qsize() > 10, "most of it is still with the cluster"
    assert [after(lines) for _ in range(19)] == [str(number) for number in range(1, 20)]


def test_readers_end_when_nobody_follows(place, monkeypatch):
    monkeypatch.setattr(module, "WAITING", 1)
    place.begins(place.made())
    before = set(threading.enumerate())
    lines = place.follows()
    (reader,) = set(threading.enumerate()) - before
    for number in range(5):
        place.prints(str(number))
    lines.close()
    reader.join(10)
    assert not reader.is_alive()


def test_a_cluster_that_is_silent_is_borne_for_a_while(place, monkeypatch):
    place.begins(place.made())
    lines = place.follows()

    def silent(*_):
        raise Unreachable("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(place.cluster, "list", silent)
        looked(lines)
    place.prints("it goes on")
    assert after(lines) == "it goes on"
    monkeypatch.setattr(place.cluster, "list", silent)
    with pytest.raises(Unreachable):
        list(islice(lines, 10 * round(BORNE_FOR)))


def test_what_no_container_is_called_is_said_once_all_pods_are_there(place):
    assert place.follows("nobody")
    for job in ("sums-master-1", "sums-container-1", "sums-container-2"):
        place.made(job)
    with pytest.raises(NotFound, match=r"has no log of nobody; it has adds_up-0, .*topology-master"):
        place.follows("nobody")


def test_without_following_what_is_there_is_printed(place):
    place.begins(place.made())
    place.made("sums-container-2")
    place.prints("a line")
    with PodLogs(place.cluster, find(place.cluster, "Sums")) as found:
        assert [line.text for line in found.lines()] == ["a line"]


def test_without_following_a_log_that_breaks_off_is_named_after_the_others(place):
    place.begins(place.made())
    place.begins(place.made("sums-container-2"), "adds-up-1")
    place.prints("its beginning")
    place.prints("all of it", "sums-container-2-x", "adds-up-1")
    place.end["sums-container-1-x"] = BROKEN
    shown = []
    with PodLogs(place.cluster, find(place.cluster, "Sums")) as found:
        with pytest.raises(Unreachable, match=r"^adds_up-0: the log is not whole: the log breaks off$"):
            shown.extend(line.text for line in found.lines())
        assert shown == ["its beginning", "all of it"]
        with pytest.raises(Unreachable):
            found.newest("adds_up-0", 100)
        assert found.newest("adds_up-1", 100) == b"all of it\n"


@pytest.fixture
def lost(place):
    """A pod on a node that does not answer, beside one that prints."""
    place.begins(place.made())
    pod = place.made("sums-container-2")
    for container in ("numbers-1", "adds-up-1"):
        place.begins(pod, container)
    statuses = [{"name": container, "state": {"running": {}}} for container in ("numbers-1", "adds-up-1")]
    place.cluster.patch("Pod", pod, {"status": {"containerStatuses": statuses}})
    place.lost.add(pod)
    return pod


def test_a_node_that_does_not_answer_keeps_no_other_log_away(place, lost):
    place.prints("a line")
    found, shown = PodLogs(place.cluster, find(place.cluster, "Sums")), []
    with pytest.raises(Unreachable, match=r"adds_up-1.*: the log is not whole: dial tcp"):
        shown.extend(line.text for line in found.lines())
    assert shown == ["a line"]
    assert len(place.refused) == 1, "its other log would take as long"


def test_it_is_followed_once_its_node_answers_and_the_others_meanwhile(place, lost):
    lines = place.follows(tail=1)
    assert list(filter(None, islice(lines, round(BORNE_FOR)))) == []
    place.prints("a line")
    assert after(lines) == "a line"
    place.lost.clear()
    for text in ("long ago", "lately"):
        place.prints(text, lost, "adds-up-1")
    assert after(lines) == "lately"


class Answer:
    """Breaks in the middle of a line."""

    def stream(self, _):
        yield b"whole\nhal"
        raise ProtocolError("Connection broken")

    def shutdown(self):
        """Nothing is open."""

    close = shutdown


def test_half_a_line_is_none():
    """It comes again, whole, with the next stream."""
    stream, read = LogStream(Answer(), "the log of a b"), []
    with pytest.raises(Unreachable, match="the log of a b breaks off: Connection broken"):
        read.extend(stream)
    assert read == [b"whole"]
    stream.close()
    assert list(stream) == [b"whole"], "to close it is no break"
