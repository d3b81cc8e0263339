"""Who may do what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.console.tokens import Hosts, Right, Tokens, is_same_origin
from ardea.errors import UserError

VIEW, ACT = "v" * 32, "a" * 32


def test_each_token_has_its_right():
    tokens = Tokens(VIEW, ACT)
    assert tokens.right(f"Bearer {VIEW}") is Right.VIEW
    assert tokens.right(f"bearer {ACT}") is Right.ACT


@given(st.one_of(st.none(), st.text(), st.builds("Bearer {}".format, st.text())))
def test_nothing_else_has_one(header):
    assert Tokens(VIEW, ACT).right(header) is Right.NONE
    assert Tokens(VIEW, None).right(header) is Right.NONE


def test_where_nobody_may_act_no_token_lets_one():
    for token in ("", "None", ACT):
        assert Tokens(VIEW, None).right(f"Bearer {token}") is Right.NONE


def test_they_do_not_show_in_a_traceback():
    assert VIEW not in repr(Tokens(VIEW, ACT))


def test_fresh_ones_are_long_and_never_the_same():
    made = {token for _ in range(100) for token in (lambda t: (t.view, t.act))(Tokens.fresh(act=True))}
    assert len(made) == 200
    assert min(map(len, made)) >= 32


def test_they_are_read_from_a_folder(tmp_path):
    (tmp_path / "view").write_text(f"{VIEW}\n")
    assert Tokens.read(tmp_path) == Tokens(VIEW, None)
    (tmp_path / "act").write_text(ACT)
    assert Tokens.read(tmp_path) == Tokens(VIEW, ACT)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "there is no token in .*view"),
        ({"act": ACT}, "there is no token in .*view"),
        ({"view": "short"}, "fewer than 16 characters"),
        ({"view": VIEW, "act": ""}, "fewer than 16 characters"),
        ({"view": VIEW, "act": VIEW}, "are the same"),
    ],
)
def test_a_folder_without_good_ones_is_refused(tmp_path, files, says):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=says):
        Tokens.read(tmp_path)


@given(st.text())
def test_no_name_that_others_have_made_is_ours(host):
    allowed = Hosts(["console.example"])
    name = host.lower().rpartition(":")[0] if ":" in host else host.lower()
    ours = {"127.0.0.1", "localhost", "[::1]", "console.example"}
    assert not allowed.allows(host) or name in ours or host.lower() in ours


def test_an_origin_is_the_same_with_the_port_that_its_scheme_has():
    assert is_same_origin("console.example", "https://console.example", "same-origin")
    assert is_same_origin("console.example:443", "https://console.example", None)
    assert is_same_origin("localhost:8080", None, None)
    assert not is_same_origin("console.example:80", "https://console.example", None)
    assert not is_same_origin("console.example", "file://console.example", None)
