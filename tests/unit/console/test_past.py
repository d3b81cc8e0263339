"""Hours and days: the route, the times of samples, and a Prometheus that is down, hostile or somebody else."""

from __future__ import annotations

import contextlib
import itertools
import threading
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ardea.console import prometheus
from ardea.console.past import Chosen, Line, Span, query, samples
from ardea.console.prometheus import Prometheus
from ardea.errors import ArdeaError, ClusterError, Unreachable, UserError
from tests.unit.console.conftest import a_browser

SPAN = Span(600, 660, 30)


@pytest.mark.parametrize(("hours", "step", "times"), [(1, 15, 241), (6, 90, 241), (24, 360, 241), (744, 11160, 241)])
def test_samples_lie_at_the_same_times_whenever_they_are_asked_for(hours, step, times):
    for now in (1_795_863_000.9, 1_795_863_007.0):
        span = Span.of_hours(hours, now)
        assert (span.step, len(span.times), span.times[-1] - span.times[0]) == (step, times, hours * 3600)
        assert all(at % step == 0 for at in span.times)
        assert now - step < span.times[-1] <= now


def test_a_rate_is_never_of_less_than_two_scrapes():
    assert "[120s]" in query("T", Chosen(), SPAN)
    assert "[11160s]" in query("T", Chosen(), Span.of_hours(744, 1e9))


def test_what_is_no_sample_is_not_shown():
    def of(values, **metric):
        return Line({"field": "emitted", **metric}, values)

    told = samples(
        [
            of([(600.0, "1.23456789"), (630.0, "NaN"), (660.0, "+Inf")], component="count"),
            of([(570.0, "1"), (615.0, "1"), (690.0, "1"), (630.0, "much"), (660.0, "5")], component="lines"),
            of([(600.0, "1")], component="someone"),
            of([(600.0, "1")], task="9"),
            of([(600.0, "1")]),
            of([(600.0, "1")], component="count", field="new"),
        ],
        Chosen(["count", "lines"], {"count-0": 3}),
        SPAN,
    )
    assert {name: fields["emitted"] for name, fields in told.series.items()} == {
        "count": [1.23457, None, None],
        "lines": [None, None, 5.0],
    }
    assert (told.since, told.interval, told.times) == (600.0, 30.0, [600.0, 630.0, 660.0])


class Answers:
    """Prometheus' place; ``asked`` has what was sent."""

    def __init__(self, status, body, headers=None):
        self.asked = []
        answers = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                size = int(self.headers["content-length"])
                answers.asked.append((self.path, self.headers["authorization"], self.rfile.read(size).decode()))
                self.send_response(status)
                for name, value in ({"content-length": len(body)} | (headers or {})).items():
                    self.send_header(name, str(value))
                self.end_headers()
                with contextlib.suppress(OSError):  # it has heard enough
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/of/it"

    def __enter__(self):
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


FOUND = b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[600,"1"]]}]}}'


def test_it_is_asked_with_the_token_that_the_file_has_then(tmp_path):
    token = tmp_path / "token"
    with Answers(200, FOUND) as answers:
        asked = Prometheus(answers.url + "/", token)
        with pytest.raises(UserError, match="file of --prometheus-token cannot be read"):
            asked.ask("up", SPAN)
        for text in ("first\n", "second"):
            token.write_text(text)
            assert asked.ask("up", SPAN) == [Line({"a": "b"}, [(600.0, "1")])]
    assert [each[:2] for each in answers.asked] == [
        ("/of/it/api/v1/query_range", "Bearer first"),
        ("/of/it/api/v1/query_range", "Bearer second"),
    ]
    assert answers.asked[0][2] == "query=up&start=600&end=660&step=30&timeout=10s"


@pytest.mark.parametrize(
    ("status", "body", "headers", "says"),
    [
        (401, b"", {}, "refuses with status 401"),
        (503, b'{"status":"error","error":"\\u001b[31mtoo many"}', {}, r"status 503: \\x1b\[31mtoo many"),
        (500, b"\xff" * 99, {}, "refuses with status 500"),
        (302, b"", {"location": "http://127.0.0.1:9/"}, "refuses with status 302"),
        (200, b"<html>", {}, "is no Prometheus"),
        (200, b"\xff\xfe", {}, "is no Prometheus"),
        (200, b"[]", {}, "is no Prometheus"),
        (200, b'{"data":{"result":[{"metric":{},"values":[["x",1]]}]}}', {}, "is no Prometheus"),
        (200, b'{"data":{"result":[{"metric":{},"value":[1,"2"]}]}}', {}, "is no Prometheus"),
        (200, FOUND[:40], {"content-length": 99}, "is no Prometheus"),
    ],
)
def test_what_is_no_answer_is_one_message(status, body, headers, says):
    with Answers(status, body, headers) as answers, pytest.raises(ClusterError, match=says) as error:
        Prometheus(answers.url).ask("up", SPAN)
    assert error.value.hint


def test_an_answer_without_end_is_not_read(monkeypatch):
    monkeypatch.setattr(prometheus, "MOST_BYTES", 1 << 20)
    with (
        Answers(200, b" " * ((1 << 20) + 1)) as answers,
        pytest.raises(ClusterError, match="more than 1 MiB"),
    ):
        Prometheus(answers.url).ask("up", SPAN)


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_that_comes_too_slowly_is_given_up(status, monkeypatch):
    """Each byte takes a second: none of them is late, but all together are."""
    now = itertools.count(100.0)
    monkeypatch.setattr(prometheus, "clock", lambda: next(now))
    monkeypatch.setattr(HTTPResponse, "read1", lambda *_: b" ")
    with (
        Answers(status, b" " * 99) as answers,
        pytest.raises(Unreachable, match="not all of its answer has come within 10 s"),
    ):
        Prometheus(answers.url).ask("up", SPAN)
    assert next(now) == 111.0


def test_nobody_answers():
    with Answers(200, b"") as answers:
        pass
    with pytest.raises(Unreachable, match=r"does not answer: .*refused"):
        Prometheus(answers.url).ask("up", SPAN)


@pytest.mark.parametrize(
    "url", ["", "prometheus:9090", "file:///etc/passwd", "http://", "http://host:port", "http://a/?x=1", "http://a:b@c"]
)
def test_what_is_no_address_is_refused_at_the_start(url):
    with pytest.raises(UserError, match="--prometheus takes an address"):
        Prometheus(url)


def test_without_one_no_hours_are_to_be_had(browser, submit):
    submit()
    assert browser.get("/topologies/Endless/history").json()["longer"] is False
    told = browser.get("/topologies/Endless/history?hours=1")
    assert (told.status_code, told.json()["hint"]) == (400, "start the console with --prometheus")


@pytest.mark.parametrize("hours", ["0", "745", "-1", "1.5", "x", ""])
def test_hours_that_cannot_be(browser, submit, hours):
    submit()
    assert browser.get(f"/topologies/Endless/history?hours={hours}").status_code == 400


def test_the_document_of_hours(knowing, submit):
    topology = submit()
    lines = [
        Line({"field": "acked", "component": "ignore"}, [(Span.of_hours(6, 1e9).last, "7")]),
    ]
    browser, asked = knowing(lines)
    told = browser.get("/topologies/Endless/history?hours=6&names=ignore").json()
    assert (told["longer"], told["interval"], len(told["times"]), told["series"].keys()) == (
        True,
        90,
        241,
        {"ignore"},
    )
    [(expression, span)] = asked
    assert f'topology_id="{topology}",component=~"ignore"' in expression
    assert (span.last - span.first, told["times"][0]) == (6 * 3600, span.first)


def test_one_that_is_down_is_said_and_what_was_known_stays(knowing, submit):
    submit()
    browser, _ = knowing(Unreachable("Prometheus is down", hint="look"))
    told = browser.get("/topologies/Endless/history?hours=6")
    assert (told.status_code, told.json()["what"]) == (503, "Prometheus is down")


@pytest.fixture
def knowing():
    """A console that is told these lines, or raises; and what was asked."""

    def made(lines):
        asked = []

        class Told:
            def ask(self, expression, span):
                asked.append((expression, span))
                if isinstance(lines, ArdeaError):
                    raise lines
                return lines

        return close.enter_context(a_browser(Told())), asked

    with contextlib.ExitStack() as close:
        yield made
