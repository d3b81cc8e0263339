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
        (ValueError("red \x1b[31m\x9b2J\b\x7f\rover"), "red \\x1b[31m\\x9b2J\\x08\\x7f\\rover"),
        (ValueError("turned \u202egpj.exe\u2066 \u2028\ufeff"), "turned \\u202egpj.exe\\u2066 \\u2028\\ufeff"),
        (ValueError("\ttab\r\nنص 👩\u200d🚀"), "\ttab\r\nنص 👩\u200d🚀"),
        (ValueError("x" * 500), "x" * 500),
        (ValueError("x" * 20_000_000), f"{'x' * 500}... (20,000,000 characters)"),
    ],
)
def test_every_error_has_a_text_that_can_be_printed(error, text):
    assert printable(error) == text
