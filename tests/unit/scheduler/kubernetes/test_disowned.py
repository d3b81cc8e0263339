"""A master whose account the cluster does not know any more ends, so that its Job makes a pod with a new token."""

from __future__ import annotations

from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from kubernetes.client import ApiClient, Configuration

from ardea.errors import ClusterError, Unreachable, Unrecognized
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.keeper import ACCOUNT_LOOK_EVERY, LOOK_EVERY, UNRECOGNIZED_FOR, KeeperThread
from ardea.scheduler.kubernetes.reporter import OwnPod

UNKNOWN = Unrecognized("cannot read Pod x: Unauthorized")


class Place:
    """A cluster, as a keeper's thread sees it: each request is answered, or refused with ``error``."""

    def __init__(self, *, acting):
        self.now, self.error, self.asked, self.disowned = 0.0, None, 0, []
        own_pod = OwnPod(self, "x", lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self.thread = KeeperThread(
            self, own_pod, lambda: acting, lambda: 0.0, lambda: self.disowned.append(self.now), clock=lambda: self.now
        )

    def request(self):
        self.asked += 1
        if self.error is not None:
            raise self.error

    def find(self, _kind, _name):
        """Of the pod; there is none, so that nothing is written."""
        self.request()

    round = request

    def passes(self, seconds):
        end = self.now + seconds
        while self.now < end:
            self.now += LOOK_EVERY
            self.thread.look()


@pytest.mark.parametrize("acting", [True, False])
def test_it_ends_once_the_cluster_has_not_known_it_for_a_while(acting):
    place = Place(acting=acting)
    place.passes(60)
    place.error = UNKNOWN
    place.passes(UNRECOGNIZED_FOR - ACCOUNT_LOOK_EVERY - LOOK_EVERY)
    assert not place.disowned
    place.passes(2 * ACCOUNT_LOOK_EVERY)
    assert place.disowned


@pytest.mark.parametrize("acting", [True, False])
@pytest.mark.parametrize("error", [Unreachable("HTTP 503"), ClusterError("forbidden"), None])
def test_other_errors_and_a_passing_one_end_nothing(acting, error):
    place = Place(acting=acting)
    for _ in range(10):
        place.error = UNKNOWN
        place.passes(ACCOUNT_LOOK_EVERY)
        place.error = error
        place.passes(2 * ACCOUNT_LOOK_EVERY)
    assert not place.disowned


@pytest.mark.parametrize("acting", [True, False])
@pytest.mark.parametrize("error", [KeyError("record.json"), ValueError("Expecting value: line 1")])
def test_an_error_that_nobody_has_foreseen_ends_a_round_and_not_the_thread(acting, error, caplog):
    place = Place(acting=acting)
    place.error = error
    place.passes(10 * ACCOUNT_LOOK_EVERY)
    asked, place.error = place.asked, None
    place.passes(2 * ACCOUNT_LOOK_EVERY)
    assert place.asked > asked >= 9
    assert caplog.messages == [f"{type(error).__name__}: {error}; it is tried again"]
    assert not place.disowned


def test_one_that_stands_by_asks_now_and_then():
    place = Place(acting=False)
    place.passes(100 * ACCOUNT_LOOK_EVERY)
    assert 90 <= place.asked <= 101


@pytest.mark.parametrize(("status", "kind"), [(401, Unrecognized), (403, ClusterError)])
def test_an_answer_401_says_that_nobody_knows_who_asks(status, kind):
    class Refuses(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b'{"message": "no"}')

        def log_message(self, *_):
            """None."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
        Thread(target=server.serve_forever).start()
        cluster = Cluster(ApiClient(Configuration(host=f"http://127.0.0.1:{server.server_port}")), "n")
        try:
            with pytest.raises(ClusterError) as told:
                cluster.find("Pod", "x")
        finally:
            cluster.close()
            server.shutdown()
    assert type(told.value) is kind
    assert told.value.message.endswith("Pod x in namespace n: no")
