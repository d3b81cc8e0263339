"""Where the rows of a transaction go among those of a partition's windows."""

from __future__ import annotations

import pytest

from ardea.trident.event_windows import free_slot


class Used(list):
    """Slots of chunks, which are thousands; each look for one goes through all."""

    def __contains__(self, slot):
        pytest.fail("it looks through all chunks for each slot")


@pytest.mark.parametrize(("used", "free"), [([], 0), ([0, 1, 2], 3), ([2, 0], 1), ([1, 2], 0)])
def test_the_first_slot_without_rows_is_found_in_one_pass(used, free):
    assert free_slot(Used(used)) == free
