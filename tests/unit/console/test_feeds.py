"""What one viewer gets, and what is left out of a log for one who is slow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ardea.console.documents import Line, encoded
from ardea.console.feeds import Feed, LineFeed, Shared, Viewers


def test_a_viewer_gets_each_document_once_and_the_newest_only():
    feed, first, other = Feed(), encoded({"rate": 1}), encoded({"rate": 2})
    assert [news.kind for news in feed.news({"top": first, "plan": first})] == ["top", "plan"]
    assert feed.news({"top": first, "plan": first}) == []
    assert [(news.kind, news.body) for news in feed.news({"top": other, "plan": first})] == [("top", b'{"rate":2}')]
    assert [news.kind for news in Feed().news({"top": other})] == ["top"], "a viewer who comes again has nothing"


def test_documents_are_made_once_for_all_viewers_of_the_same():
    shared, made = Shared(most=2), []

    def make():
        made.append(1)
        return {}

    said, news = object(), object()
    for _ in range(100):
        shared.of("a", (said,), make)
    assert len(made) == 1
    shared.of("a", (news,), make)
    assert len(made) == 2
    for key in ("b", "c"):
        shared.of(key, (said,), make)
    shared.of("a", (news,), make)
    assert len(made) == 5, "no more than two are kept"


def test_halves_of_a_pair_in_an_exception_can_be_sent():
    assert encoded({"why": "\ud83d"}).body == b'{"why": "\\ud83d"}'


@given(st.lists(st.one_of(st.none(), st.text(max_size=40))), st.integers(1, 100))
def test_lines_come_in_their_order_and_none_goes_without_being_counted(steps, most):
    """None: the viewer takes what there is."""
    feed, put, got, left_out = LineFeed(most), [], [], 0
    for text in [*steps, None]:
        if text is None:
            lines, missing = feed.take()
            assert len(lines) <= 1 or sum(len(line.text.encode()) + 1 for line in lines) <= most
            got += [line.text for line in lines]
            left_out += missing
        else:
            put.append(text)
            feed.put(Line(process="a", text=text))
    assert len(got) + left_out == len(put)
    rest = iter(put)
    assert all(text in rest for text in got), "in order"
    assert got[-1:] == put[-1:], "the newest is never left out"


def test_there_is_room_for_so_many_viewers_and_again_when_one_leaves():
    viewers = Viewers(2)
    assert [viewers.enter() for _ in range(3)] == [True, True, False]
    viewers.leave()
    assert viewers.enter()
