"""What the client is given of a record."""

from __future__ import annotations

import pytest

from ardea.kafka import Record
from ardea.kafka.transactions import _headers

HALF = "a\ud800"
"""With half a surrogate pair: the client's library ends the process for a header of that name."""


def test_a_header_whose_name_is_no_utf8_is_not_given_to_the_client():
    with pytest.raises(ValueError, match=r"the header's name 'a\\ud800' cannot be written as UTF-8"):
        Record(b"v", headers=[("ä", b"1"), (HALF, b"2")]).arguments("t")
    assert Record(b"v", headers=[("ä", b"1")]).arguments("t")["headers"] == [("ä", b"1")]


def test_a_dead_letter_has_its_name_in_another_writing():
    assert _headers([(HALF, "b"), ("ä", None)]) == [("a\\ud800", b"b"), ("ä", None)]
