"""What several files ask for."""

from __future__ import annotations

import pytest

from ardea.transport import context


@pytest.fixture
def ctx():
    made = context()
    yield made
    made.destroy(linger=0)
