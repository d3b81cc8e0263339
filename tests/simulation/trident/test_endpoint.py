"""What callers of a function get: over real HTTP for each route and error of docs/drpc.md, and in this process."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection

import pytest

from ardea.drpc import DrpcClient, DrpcError, DrpcErrorType, LocalDrpc, Requests, connections, endpoint
from ardea.drpc.endpoint import Endpoint
from ardea.errors import NotFound, StateError, TopologyError
from ardea.testing import Cluster
from ardea.trident import TridentTopology

PATIENCE = 20.0
MOST_BYTES = 200_000


class Served:
    """The function f, whose topology is the test: it takes requests and settles them."""

    def __init__(self, undo, most, timeout):
        self.requests = Requests("f", most)
        self.endpoint = Endpoint(self.requests, "127.0.0.1", 0, timeout, MOST_BYTES)
        self._undo = undo
        undo.callback(self.endpoint.close)

    def begin(self, method, path, body=None, headers=None):
        """A call whose answer is still to come."""
        connection = self._undo.enter_context(closing(HTTPConnection(self.endpoint.address, timeout=PATIENCE)))
        connection.request(method, path, body, headers or {})
        return connection

    def ask(self, method, path, body=None, headers=None):
        """A call that needs no topology."""
        return answered(self.begin(method, path, body, headers))

    def settle(self, request, text, token=None, way="answers"):
        """As a task of the topology, which has the token; the status."""
        headers = {} if token is None else {"X-Token": token}
        response = self.begin("POST", f"/{way}/{request.id}", text, headers).getresponse()
        return response.status, response.read()


def answered(connection):
    """(status, document)."""
    response = connection.getresponse()
    assert response.headers["Content-Type"] == "application/json"
    return response.status, json.loads(response.read())


def refused(answer, status, type_, message):
    """Whether it is this error, with two fields."""
    found, document = answer
    return found == status and document == {"type": type_, "error": message}


@pytest.fixture
def serve():
    with ExitStack() as undo:
        yield lambda most=2, timeout=PATIENCE: Served(undo, most, timeout)


CALLS = {
    "POST": ("POST", "/drpc/f", "the moön", "the moön"),
    "POST without a body": ("POST", "/drpc/f", None, ""),
    "POST of what is no text": ("POST", "/drpc/f", b"a\xff", "a\ufffd"),
    "GET": ("GET", "/drpc/f", None, ""),
    "GET with an argument": ("GET", "/drpc/f/the%20mo%C3%B6n", None, "the moön"),
    "GET with a path": ("GET", "/drpc/f/a/b%2Fc", None, "a/b/c"),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_answer(serve, deadline, call):
    """The way of a request: the caller, the topology, and back by a task of its own."""
    served, (method, path, body, args) = serve(), CALLS[call]
    caller = served.begin(method, path, body.encode() if isinstance(body, str) else body)
    request = deadline(served.requests.take, "the request is there")
    assert request.args == args
    assert served.settle(request, '[["the",120],["moön",3]]'.encode(), served.endpoint.token) == (200, b"")
    assert answered(caller) == (200, [["the", 120], ["moön", 3]])


def test_answers_out_of_turn(serve, deadline):
    """Requests do not wait for one another."""
    served = serve(most=3)
    callers = {args: served.begin("GET", f"/drpc/f/{args}") for args in "abc"}
    requests = [deadline(served.requests.take, "the requests are there") for _ in callers]
    for request in (*requests[1:], requests[0]):
        served.settle(request, json.dumps([[request.args]]), served.endpoint.token)
    assert {args: answered(caller) for args, caller in callers.items()} == {args: (200, [[args]]) for args in "abc"}


def test_a_failure_of_a_task(serve, deadline):
    served = serve()
    caller = served.begin("POST", "/drpc/f")
    request = deadline(served.requests.take, "the request is there")
    why = "b-1-0: ValueError: nö at counts.py:12"
    assert served.settle(request, why.encode(), served.endpoint.token, "failures") == (200, b"")
    assert served.settle(request, "another", served.endpoint.token, "failures") == (410, b""), "once"
    assert refused(answered(caller), 500, "FAILED_REQUEST", why)


@pytest.mark.parametrize("token", [None, "", "0" * 32, "\xe9"])
@pytest.mark.parametrize("way", ["answers", "failures"])
def test_who_does_not_know_the_token_answers_nothing(serve, deadline, token, way):
    served = serve()
    caller = served.begin("POST", "/drpc/f")
    request = deadline(served.requests.take, "the request is there")
    status, body = served.settle(request, "[[666]]", token, way)
    assert refused((status, json.loads(body)), 403, "INTERNAL_ERROR", "wrong token")
    assert served.settle(request, "[[1]]", served.endpoint.token) == (200, b"")
    assert served.settle(request, "[[2]]", served.endpoint.token) == (410, b""), "once"
    assert answered(caller) == (200, [[1]])


@pytest.mark.parametrize(("method", "path"), [("POST", "/drpc/g"), ("GET", "/drpc/g"), ("GET", "/drpc/g/x")])
def test_no_such_function(serve, method, path):
    served = serve()
    assert refused(served.ask(method, path), 404, "INTERNAL_ERROR", "there is no function g here, only f")
    assert served.requests.take() is None


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/f", 404),
        ("PUT", "/drpc/f", 405),
        ("POST", "/drpc/f/x", 405),
        ("HEAD", "/drpc/f", 405),
        ("GET", "/answers/1", 405),
    ],
)
def test_no_such_route(serve, method, path, status):
    served = serve()
    assert served.begin(method, path).getresponse().status == status
    assert served.requests.take() is None


@pytest.mark.parametrize(
    ("type_", "status"), [("FAILED_REQUEST", 500), ("INTERNAL_ERROR", 503), ("SERVER_SHUTDOWN", 503)]
)
def test_the_topology_has_no_answer(serve, deadline, type_, status):
    served = serve()
    caller = served.begin("POST", "/drpc/f", "x")
    request = deadline(served.requests.take, "the request is there")
    served.requests.fail(request.id, DrpcErrorType(type_), "because")
    assert refused(answered(caller), status, type_, "because")


def test_no_answer_in_time(serve, monkeypatch):
    """And one that comes too late is told so."""
    served, made = serve(most=1, timeout=0.05), []
    submit = served.requests.submit
    monkeypatch.setattr(served.requests, "submit", lambda args: made.append(submit(args)) or made[-1])
    answer = served.ask("POST", "/drpc/f", "x")
    assert refused(answer, 504, "SERVER_TIMEOUT", "f gave no answer within 0.05 s")
    following = served.requests.submit("y")
    assert served.requests.take() is following, "it waits no longer, and takes nobody's place"
    assert served.settle(made[0], "[[1]]", served.endpoint.token) == (410, b"")


def test_too_many_wait(serve, deadline):
    served = serve(most=2)
    for args in ("a", "b"):
        served.requests.submit(args)
    answer = served.ask("POST", "/drpc/f", "c")
    assert refused(answer, 503, "INTERNAL_ERROR", "2 requests of f are waiting already")
    assert served.requests.take().args == "a", "and there is room again"
    caller = served.begin("POST", "/drpc/f", "d")
    request = deadline(lambda: (r := served.requests.take()) and r.args == "d" and r, "the fourth is there")
    served.settle(request, "[]", served.endpoint.token)
    assert answered(caller) == (200, [])


def test_the_topology_ends(serve, deadline):
    """Who waits is told, who comes meanwhile too; later ones find nobody."""
    served = serve()
    taken = served.begin("POST", "/drpc/f", "taken")
    deadline(served.requests.take, "the first is there")
    served.requests.close()
    assert refused(answered(taken), 503, "SERVER_SHUTDOWN", "f was closed")
    assert refused(served.ask("POST", "/drpc/f", "x"), 503, "SERVER_SHUTDOWN", "f is closed")
    served.endpoint.close()
    with pytest.raises(ConnectionRefusedError):
        served.ask("POST", "/drpc/f", "x")


def test_the_endpoint_ends_with_a_call_open(serve, deadline):
    served = serve()
    caller = served.begin("POST", "/drpc/f", "x")
    deadline(served.requests.take, "the request is there")
    served.endpoint.close()
    assert refused(answered(caller), 503, "SERVER_SHUTDOWN", "f was closed")


TOO_LARGE = "an argument of f has 200,000 bytes at most"


def chunks(sent):
    """A body whose length nobody says; what of it is asked for."""
    for _ in range(1000):
        sent.append(1)
        yield b"x" * 10_000


def test_an_argument_is_read_as_far_as_it_may_go(serve, deadline):
    served, sent = serve(), []
    assert refused(served.ask("POST", "/drpc/f", b"x" * (MOST_BYTES + 1)), 413, "INTERNAL_ERROR", TOO_LARGE)
    assert refused(served.ask("POST", "/drpc/f", chunks(sent)), 413, "INTERNAL_ERROR", TOO_LARGE)
    assert refused(served.ask("POST", "/drpc/f", b"\xff" * (MOST_BYTES // 2)), 413, "INTERNAL_ERROR", TOO_LARGE)
    caller = served.begin("POST", "/drpc/f", b"x" * MOST_BYTES)
    request = deadline(served.requests.take, "the largest argument is there")
    assert len(request.args) == MOST_BYTES
    served.requests.answer(request.id, "[]")
    assert answered(caller) == (200, [])


def test_a_declared_length_is_refused_before_a_byte_of_the_body(serve):
    served = serve()
    headers = {"Content-Length": str(1 << 40)}
    assert refused(served.ask("POST", "/drpc/f", None, headers), 413, "INTERNAL_ERROR", TOO_LARGE)


def test_open_calls_hold_so_much_in_all(serve, deadline, monkeypatch):
    monkeypatch.setattr(endpoint, "HELD_BYTES", 0)
    served = serve()
    first = served.begin("POST", "/drpc/f", b"x" * MOST_BYTES)
    request = deadline(served.requests.take, "the first is there")
    message = "the arguments of open calls of f take 200,000 bytes already"
    assert refused(served.ask("POST", "/drpc/f", b"x"), 503, "INTERNAL_ERROR", message)
    served.requests.answer(request.id, "[]")
    assert answered(first) == (200, [])
    served.begin("POST", "/drpc/f", b"x")
    deadline(served.requests.take, "there is room again")


def test_so_many_calls_are_open_and_answers_come_in(serve, deadline, monkeypatch):
    monkeypatch.setattr(endpoint, "CALLS", 1)
    served = serve()
    first = served.begin("POST", "/drpc/f", "x")
    request = deadline(served.requests.take, "the first is there")
    message = "1 calls of f are open already"
    assert refused(served.ask("POST", "/drpc/f", "y"), 503, "INTERNAL_ERROR", message)
    assert served.settle(request, "[]", served.endpoint.token) == (200, b"")
    assert answered(first) == (200, [])


def test_connections_that_say_nothing_make_room(serve, deadline, monkeypatch):
    monkeypatch.setattr(connections, "CONNECTIONS", 3)
    served = serve()
    first = served.begin("POST", "/drpc/f", "x")
    request = deadline(served.requests.take, "the first is there")
    with ExitStack() as crowd:
        host, port = served.endpoint.address.split(":")
        idle = [crowd.enter_context(socket.create_connection((host, int(port)), PATIENCE)) for _ in range(5)]
        for each in idle[:3]:
            assert each.recv(1) == b"", "the oldest are closed"
        assert served.settle(request, "[]", served.endpoint.token) == (200, b"")
    assert answered(first) == (200, [])


@pytest.mark.parametrize(
    "begun", [b"", b"POST /dr", b"POST /drpc/f HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"]
)
def test_a_request_has_one_deadline(serve, monkeypatch, begun):
    monkeypatch.setattr(connections, "WITHIN", 0.2)
    host, port = serve().endpoint.address.split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as slow, suppress(ConnectionError):
        slow.sendall(begun)
        assert slow.recv(1) == b""


def test_a_port_that_is_taken_is_told(serve):
    served = serve()
    port = int(served.endpoint.address.rpartition(":")[2])
    with pytest.raises(StateError, match=rf"function g cannot listen at 127\.0\.0\.1:{port}: .*tries again"):
        Endpoint(Requests("g", 1), "127.0.0.1", port, 1.0, 1000)


# --- in Python -------------------------------------------------------------------------------------------------------


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as pool:
        yield pool


def kind(call, *args, **kwargs):
    """Of the error that it raises."""
    with pytest.raises(DrpcError) as caught:
        call(*args, **kwargs)
    assert str(caught.value) == f"{caught.value.type}: {caught.value.reason}"
    return caught.value.type


@pytest.mark.parametrize("type_", DrpcErrorType)
def test_the_client_has_rows_or_the_same_error(serve, deadline, pool, type_):
    served = serve()
    client = DrpcClient(f"http://{served.endpoint.address}")
    good = pool.submit(client.execute, "f", "the moön")
    request = deadline(served.requests.take, "the request is there")
    assert request.args == "the moön"
    served.requests.answer(request.id, '[["the",120]]')
    assert good.result(PATIENCE) == [["the", 120]]
    bad = pool.submit(client.execute, "f", "x")
    request = deadline(served.requests.take, "the second is there")
    served.requests.fail(request.id, type_, "because")
    assert kind(bad.result, PATIENCE) is type_
    assert kind(client.execute, "g", "x") is DrpcErrorType.INTERNAL_ERROR, "no such function"


def test_the_client_gives_up_or_finds_nobody(serve):
    served = serve()
    assert kind(DrpcClient(f"http://{served.endpoint.address}").execute, "f", "x", 0.05) is DrpcErrorType.SERVER_TIMEOUT
    no_route = DrpcClient(f"http://{served.endpoint.address}")
    assert kind(no_route.execute, "a/b", "x") is DrpcErrorType.INTERNAL_ERROR
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = DrpcClient(f"http://127.0.0.1:{listener.getsockname()[1]}")
    assert kind(nobody.execute, "f", "x", PATIENCE) is DrpcErrorType.SERVER_SHUTDOWN


@pytest.mark.parametrize("function", ["", "a/b"])
def test_a_function_has_a_name_that_a_route_can_have(function):
    with pytest.raises(TopologyError, match="takes a name without a slash"):
        TridentTopology("named").new_drpc_stream(function)


def test_who_asks_in_this_process_waits_for_the_answer_or_the_error(deadline, pool):
    """``LocalDrpc.execute``, in a thread beside the topology's."""

    def fragile(tup):
        if tup["args"] == "bad":
            raise ValueError
        return tup["args"] + "!!!"

    topology, drpc = TridentTopology("local"), LocalDrpc()
    topology.new_drpc_stream("f", drpc).map(fragile, "x")

    def asked(cluster, args):
        answer = pool.submit(drpc.execute, "f", args, PATIENCE)
        deadline(lambda: cluster.advance(0.1) or answer.done(), "there is an answer")
        return answer

    with Cluster(topology) as cluster:
        assert asked(cluster, "aaa").result() == [["aaa!!!"]]
        assert kind(asked(cluster, "bad").result) is DrpcErrorType.FAILED_REQUEST
        assert asked(cluster, "b").result() == [["b!!!"]], "one failed, and no other"
        drpc.close()
        assert kind(drpc.execute, "f", "late") is DrpcErrorType.SERVER_SHUTDOWN


def test_who_asks_in_this_process_is_refused_where_too_many_wait():
    drpc = LocalDrpc(most=1)
    drpc.submit("f", "a")
    assert kind(drpc.execute, "f", "b") is DrpcErrorType.INTERNAL_ERROR
    assert kind(drpc.execute, "g", "b", 0.01) is DrpcErrorType.SERVER_TIMEOUT, "each function has room of its own"


def test_a_function_that_is_not_published_is_an_error_that_names_the_state(tmp_path):
    with pytest.raises(NotFound, match=f"no DRPC function f in the state {tmp_path}"):
        DrpcClient.find(str(tmp_path), "Words", "f")
