"""Texts of errors, of which an author can make anything."""

from __future__ import annotations

import pytest

from ardea.errors import printable


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("été\n🐦"), "été\n🐦"),
        (ValueError("half \ud800 a pair"), "half \\ud800 a pair"),
        (SilentError(), "<SilentError that has no text>"),
        (ValueError("x" * 500), "x" * 500),
        (ValueError("x" * 20_000_000), f"{'x' * 500}... (20,000,000 characters)"),
    ],
)
def test_every_error_has_a_text_that_can_be_printed(error, text):
    assert printable(error) == text
