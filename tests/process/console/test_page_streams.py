"""What the page makes of streams that end and come again: a console without topologies, whose answers are made up."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.process.console.browser import Browser, browser
from tests.process.console.conftest import Console
from tests.process.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("leaks")]

LIVE = {"state": "live", "as_of": None, "reason": None}
HEALTHY = {"state": "HEALTHY", "troubles": []}
DESCRIPTION = {
    "id": "Made-1",
    "name": "Made",
    "state": "RUNNING",
    "running": True,
    "health": HEALTHY,
    "processes": [],
    "status": None,
    "submitted_at": None,
    "reason": "",
    "reading": LIVE,
}
TOP = {
    "id": "Made-1",
    "state": "RUNNING",
    "seconds": 5,
    "health": HEALTHY,
    "snapshots": None,
    "rows": [],
    "edges": [],
    "stalls": [],
    "reading": LIVE,
}
COMPONENT = {"component": "numbers", "kind": "spout", "tasks": 1, "operations": [], "inputs": {}, "functions": []}
PLAN = {"topology": "Made", "components": [COMPONENT]}
UPDATE = {"verb": "update", "state": "running", "said": ["it drains"]}
ALL = [["topology", DESCRIPTION], ["plan", PLAN], ["top", TOP], ["action", UPDATE]]

MADE_UP = """
const [streams, answers, real] = [arguments[0], Object.entries(arguments[1]), window.fetch];
window.asked = [];
window.fetch = async (where, options) => {
  if (where !== "api/v1/events" && !where.includes("/topologies/Made")) return real(where, options);
  window.asked.push(where);
  const given = answers.find(([part]) => where.includes(part))?.[1];
  if (given?.length === 0) return new Promise(() => {});
  if (given) return Response.json(given[0], {status: given.shift().status ?? 200});
  const line = {process: "numbers-0", text: `it is logged by ${where.split("/")[3]}`};
  const log = where.includes("/logs/") ? [["lines", {lines: [line], left_out: 0}]] : null;
  if (!log && !where.endsWith("/events")) return Response.json({what: "made up"}, {status: 503});
  const now = log ?? streams.shift();
  if (now === undefined) return new Promise(() => {});
  if (now === null) return Response.json({what: "made up"}, {status: 503});
  const text = now.map(([kind, data]) => `event: ${kind}\\ndata: ${JSON.stringify(data)}\\n\\n`).join("");
  const body = new ReadableStream({
    start(out) {
      out.enqueue(new TextEncoder().encode(text));
      if (log) return (window.logged = () => out.enqueue(new TextEncoder().encode(text)));
      window.endOfStream = () => out.close();
      window.ping = () => out.enqueue(new TextEncoder().encode(": ping\\n\\n"));
    },
  });
  return new Response(body, {headers: {Date: new Date(window.consoleNow ?? Date.now()).toUTCString()}});
};
"""


@pytest.fixture
def page(tmp_path) -> Iterator[Browser]:
    shown = Console(tmp_path)
    try:
        with browser() as opened:
            opened.open(shown.link)
            opened.shows("No topology has been submitted")
            yield opened
            assert opened.complaints() == []
    finally:
        shown.stop()


def streams(
    page: Browser,
    *all_: list[list[object]] | None,
    route: str = "/t/Made",
    answers: dict[str, list[dict[str, object]]] | None = None,
) -> None:
    """What is said of the topology ``Made`` one after the other; each stream lasts until the test ends it.

    None: there is no stream, the console is gone for a moment.  ``answers``: by a part of the address, what is
    answered there one after the other; after them the console is silent.
    """
    page.run(MADE_UP, list(all_), answers or {})
    page.go(route)


WITHOUT_A_SHEET = """
    const main = document.getElementById("main");
    const keep = () => main.innerText.includes("has not sent the whole page") && sessionStorage.setItem("said", "so");
    new MutationObserver(keep).observe(main, {childList: true});
    document.head.append(Object.assign(document.createElement("link"), {rel: "stylesheet", href: "no.css"}));
"""


def test_a_page_of_which_a_file_has_not_come_says_so_and_asks_again(page):
    page.without("*/layout.js")
    page.again()
    page.shows("The console has not sent the whole page")
    page.without()
    page.shows("No topology has been submitted")
    page.run(WITHOUT_A_SHEET)
    eventually(lambda: page.run("return sessionStorage.getItem('said')"), 60, "it says so, for three seconds")
    page.shows("No topology has been submitted")
    assert all("no.css" in each for each in page.complaints())


def test_a_browser_that_keeps_nothing_for_pages_is_told_why_there_is_none(page):
    page.before("Object.defineProperty(window, 'localStorage', {get() { throw new Error('it is forbidden'); }})")
    page.again()
    page.shows("cannot begin: Uncaught Error: it is forbidden")
    assert len(page.complaints()) == 1


def test_what_a_new_stream_does_not_have_is_not_shown_as_present(page):
    stale = {"state": "stale", "as_of": 1, "reason": "nobody answers"}
    update = {"step": "switching", "late": []}
    status = {"acting": "", "update": update, "missing_containers": [2], "silent_tasks": [], "errors": [], "erring": []}
    last = DESCRIPTION | {"status": status}
    silent = last | {"health": {"state": "UNREACHABLE", "troubles": []}, "reading": stale}
    gone = last | {"reading": {"state": "over", "as_of": 1, "reason": "it is gone"}}
    streams(page, ALL, [["topology", silent], ["plan", PLAN]], [["topology", gone]])
    page.shows("RUNNING", "HEALTHY", "update is under way", "Kill")
    page.run("endOfStream()")
    page.shows("UNREACHABLE", "stale", "The master does not answer", "Kill", "An update is switching", "Not registered")
    assert "HEALTHY" not in page.text()
    assert "is under way" not in page.text()
    page.run("endOfStream()")
    page.shows("over: what was said of it last")
    assert not {"RUNNING", "UNREACHABLE", "HEALTHY", "Kill", "Deactivate"} & set(page.text().split())
    assert not re.search("An update is switching|Not registered", page.text())


def test_a_page_of_a_name_goes_on_to_the_next_run_and_asks_for_what_it_shows(page):
    """The next run has no rates yet, and its master knows nothing of a verb."""
    second = DESCRIPTION | {"id": "Made-2", "state": "PAUSED", "health": None}
    streams(page, ALL, [["topology", second], ["plan", PLAN]])
    page.shows("Made-1", "HEALTHY", "update is under way")
    page.run("endOfStream()")
    page.shows("Made-2", "PAUSED", "Its spouts are paused")
    assert not {"Made-1", "HEALTHY", "stale"} & set(page.text().split())
    assert "is under way" not in page.text()
    page.press("Activate")
    asked = "return asked.filter((each) => each.endsWith('/activate'))"
    assert eventually(lambda: page.run(asked), 20, "the dry run is asked for") == ["api/v1/topologies/Made-2/activate"]


def test_the_log_of_a_name_goes_on_to_the_next_run_with_its_last_lines(page):
    second = DESCRIPTION | {"id": "Made-2"}
    streams(page, ALL, [["topology", second], ["plan", PLAN]])
    page.shows("Made-1")
    page.go("/t/Made/logs")
    page.shows("it is logged by Made-1")
    page.run("endOfStream()")
    page.shows("it is logged by Made-2")
    assert "it is logged by Made-1" not in page.text()
    [first, next_] = page.run("return asked.filter((each) => each.includes('/logs/'))")
    assert next_ == first.replace("Made-1", "Made-2")
    assert "tail=500" in next_


def master(pid: int) -> dict[str, object]:
    end = {"last_end": None, "last_reason": "", "crash_loop": ""}
    lives = {"pid": pid, "life": 1, "restarts": 0}
    return {"container": 0, "name": "topology-master", "state": "running", **lives, **end}


def test_two_masters_are_two_rows_however_often_they_are_drawn(page):
    """Nothing tells whose figures are whose."""
    rows = [{"component": "", "task": "topology-master", "container": 0, "cpu": cpu} for cpu in (0.25, 0.75)]
    top = TOP | {"rows": [each | {"resident_memory_bytes": 5000} for each in rows]}
    first, second = (DESCRIPTION | {"processes": [master(pid), master(pid + 1)]} for pid in (4711, 4713))
    streams(page, [["topology", first], ["plan", PLAN], ["top", top]], [["topology", second], ["plan", PLAN]])
    page.go("/t/Made/containers")
    page.shows("4711", "4712")
    page.run("endOfStream()")
    page.shows("4713", "4714")
    found = "return [...document.querySelectorAll('tbody tr')].map((row) => row.innerText)"
    rows = [row for row in page.run(found) if "topology-master" in row]
    assert len(rows) == 2, rows
    assert not re.search(r"0\.25|0\.75", "".join(rows))


HIDE = """
Object.defineProperty(document, "hidden", {value: arguments[0], configurable: true});
document.dispatchEvent(new Event("visibilitychange"));
"""


def test_a_tab_that_is_seen_again_says_nothing_is_live_until_it_is_heard_again(page):
    streams(page, ALL)
    page.shows("HEALTHY", "update is under way", "live")
    page.run(HIDE, True)
    page.run(HIDE, False)
    page.shows("connecting", "stale")
    assert "is under way" not in page.text()
    assert "The master does not answer" not in page.text()


def test_an_age_is_by_the_clock_of_the_console(page):
    """Which is a day ahead of the browser's."""
    said = page.run("return Date.now() / 1000") + 86_400 - 45
    stale = DESCRIPTION | {"reading": {"state": "stale", "as_of": said, "reason": "nobody answers"}}
    page.run("window.consoleNow = Date.now() + 86400 * 1000")
    streams(page, [["topology", stale], ["plan", PLAN]])
    page.shows("What is shown is")
    [age] = re.findall(r"stale, (\d+) s old", page.text())
    assert 44 <= int(age) < 120


LATER = """
const now = performance.now.bind(performance);
window.later = 0;
performance.now = () => now() + window.later;
"""


def test_what_is_shown_is_as_old_as_the_console_is_silent(page):
    """And not as old as what was said last: that holds as long as nothing else is said."""
    page.run(LATER)
    streams(page, ALL, None)
    page.shows("HEALTHY", "live")
    page.run("window.later = 5 * 3600 * 1000; ping()")
    page.run("endOfStream()")
    page.shows("The console is gone", "What is shown here is")
    assert re.search(r"What is shown here is \d+ s old", page.text())


def test_the_list_shows_rates_that_are_present_only(page):
    row = {"name": "Made", "state": "RUNNING", "running": True, "health": HEALTHY, "submitted_at": None}
    told = {"topologies": [row | {"id": each} for each in ("Made-1", "Made-2")], "after": None, "reading": LIVE}
    numbers = {"component": "numbers", "task": None, "failed": 0}
    stale = TOP | {
        "rows": [numbers | {"emitted": 500}],
        "reading": {"state": "stale", "as_of": 1, "reason": "no master"},
    }
    live = TOP | {"rows": [numbers | {"emitted": 700}]}
    answers = {"/Made-1/top": [stale], "/Made-2/top": [live]}
    streams(page, [["topologies", told]], route="/list", answers=answers)
    page.shows("700/s")
    assert "500/s" not in page.text()
    page.run(HIDE, True)
    page.run(HIDE, False)
    page.shows("connecting")
    assert "700/s" not in page.text()


def test_what_is_under_way_can_be_closed_and_not_cancelled(page):
    dry = {"does": ["the spouts pause"], "confirm": "a digest", "difference": None}
    buttons = "return [...document.querySelectorAll('dialog button')].map((each) => each.innerText)"
    streams(page, ALL, answers={"/deactivate": [dry]})
    page.press("Deactivate")
    page.shows("the spouts pause")
    assert page.run(buttons) == ["Cancel", "Deactivate it"]
    page.press("Deactivate it")
    page.shows("It is under way, and goes on when this is closed")
    assert page.run(buttons) == ["Close"]


def test_charts_whose_question_is_refused_keep_what_they_show_and_say_so(page):
    """The console may know no earlier answer that it could send as stale."""
    noon = 993_600  # in every time zone it is the same day
    series = {"numbers": {"emitted": [7.0, 8.0]}}
    samples = {"since": noon, "interval": 5, "times": [noon, noon + 5], "series": series}
    refused = {"status": 503, "what": "Prometheus does not answer"}
    answers = {"/history": [samples | {"longer": False, "reading": LIVE}, refused]}
    streams(page, ALL, ALL, answers=answers)
    page.shows("Lately", "since 12 Jan")
    page.run(HIDE, True)
    page.run(HIDE, False)
    page.shows("Nothing newer is known: Prometheus does not answer")


READ_OUT = """
const says = "[role=status], [role=alert], [aria-live=polite], [aria-live=assertive]";
const of = ({target}) => (target.closest ? target : target.parentElement)?.closest(says);
window.readOut = [];
const note = (changes) => window.readOut.push(...changes.filter(of).map((each) => of(each).innerText));
new MutationObserver(note).observe(document, {childList: true, characterData: true, subtree: true});
"""


def test_a_screen_reader_reads_out_what_has_happened_and_no_counters(page):
    read = "return readOut.splice(0)"
    page.run(LATER)
    streams(page, ALL, None, answers={"/stacks": []})
    page.shows("HEALTHY")
    page.go("/t/Made/logs")
    page.shows("1 line, followed")
    page.run(READ_OUT)
    page.run("logged()")
    page.shows("2 lines, followed")
    assert page.run(read) == []
    page.go("/t/Made/task/numbers-0")
    page.press("Stacks")
    page.run("endOfStream()")
    page.shows("stacks: since", "What is shown here is")
    assert len([each for each in page.run(read) if "The console is gone: made up" in each]) == 1
    page.run("window.later = 3.5 * 3600 * 1000")
    page.shows("stacks: since 3 h", "since 3 h. What is shown here is 3 h old")
    assert page.run(read) == []


ASLEEP = """
const now = Date.now.bind(Date);
Date.now = () => now() + arguments[0] * 1000;
"""


def test_after_a_sleep_of_the_machine_all_is_asked_anew_and_its_age_counts_the_sleep(page):
    """In which the steady clock of a browser may stand still, and the stream lasts."""
    streams(page, ALL, None)
    page.shows("HEALTHY", "live")
    page.run(ASLEEP, 8.5 * 3600)
    page.shows("The console is gone", "What is shown here is 8 h old")
