"""The least and the greatest are the same in whatever order values come."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.protocol.extremes import greatest, least
from ardea.trident import Max, Min

VALUES = st.lists(st.sampled_from([math.nan, Decimal("NaN"), -1, 0.5, 2, math.inf, -math.inf]), min_size=1)


@pytest.mark.parametrize(
    ("better", "of_all"), [(least, min), (greatest, max), (Min().combine, min), (Max().combine, max)]
)
@given(values=VALUES)
def test_a_nan_gives_way_in_any_order(better, of_all, values):
    numbers = [value for value in values if not math.isnan(value)]
    found = reduce(better, values)
    assert found == of_all(numbers) if numbers else math.isnan(found)
