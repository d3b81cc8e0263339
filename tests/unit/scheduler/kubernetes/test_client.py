"""What goes through the connections to a cluster, and what becomes of those that break."""

from __future__ import annotations

import json
import socket
import threading
import time
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ardea.scheduler.kubernetes.client import Cluster


class Server(BaseHTTPRequestHandler):
    """Has no objects."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        answer = b'{"items": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def date_time_string(self, timestamp=None):
        """It goes an hour slow."""
        return formatdate(time.time() - 3600, usegmt=True)

    def log_message(self, *_):
        """None."""


@pytest.fixture
def cluster(tmp_path):
    """As a kubeconfig says."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        named = {"cluster": {"server": f"http://127.0.0.1:{server.server_port}"}, "user": {}}
        named["context"] = {"cluster": "c", "user": "c", "namespace": "n"}
        file = tmp_path / "kubeconfig"
        kinds = {f"{kind}s": [{"name": "c", kind: value}] for kind, value in named.items()}
        file.write_text(json.dumps({"current-context": "c", **kinds}))
        cluster = Cluster.connect(kubeconfig=str(file))
        try:
            yield cluster
        finally:
            cluster.close()
            server.shutdown()


def test_a_connection_whose_other_end_is_gone_without_a_word_breaks_after_a_minute(cluster):
    """A followed log sends nothing, by which it would be seen."""
    answer = cluster.api.rest_client.pool_manager.request("GET", cluster.api.configuration.host, preload_content=False)
    used = answer.connection.sock
    assert used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    if hasattr(socket, "TCP_KEEPIDLE"):
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        idle, interval, probes = (used.getsockopt(socket.IPPROTO_TCP, option) for option in options)
        assert idle + interval * probes == 60
    answer.close()


def test_what_time_it_is_the_cluster_says(cluster):
    begun = datetime.now(UTC)
    assert cluster.now() >= begun, "nothing is known of it yet"
    assert cluster.list("Pod") == []
    assert 3500 < (begun - cluster.now()).total_seconds() <= 3602
