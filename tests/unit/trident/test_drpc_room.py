"""Requests have room in a row, or the function does not begin."""

from __future__ import annotations

import pytest

from ardea.errors import UserError
from ardea.testing.sinks import _context
from ardea.trident.drpc import BESIDE, DrpcAddress, DrpcSpout


def test_a_function_whose_requests_have_no_room_does_not_begin():
    """Each was refused as larger than a number below zero."""
    spout = DrpcSpout()
    spout.place = DrpcAddress("words", None, "127.0.0.1", 0)
    config = {"topology.max.tuple.bytes": BESIDE}
    with pytest.raises(UserError, match=r"topology.max.tuple.bytes is 1,024, of which 1,024 are not for the argument"):
        spout.initialize(config, _context(config))
