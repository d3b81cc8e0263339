"""The suite of tests/unit/state, once more: on a real ZooKeeper."""

from __future__ import annotations

import pytest

from tests.unit.state.test_manager import *  # noqa: F403
from tests.unit.state.test_master_watch import *  # noqa: F403
from tests.unit.state.test_term import *  # noqa: F403
from tests.unit.state.test_topologies import *  # noqa: F403

pytestmark = pytest.mark.zookeeper
