"""The gated job of jobs.py, its files in other places."""

from __future__ import annotations

import os

from jobs import Gated, gated

from ardea.spark import SparkSpout


class Served(Gated):
    """Many files: each has one batch."""

    rows = SparkSpout(gated, "n bigint", rows=500, deterministic=True, file_bytes=1, storage="serve").spec(par=2)


class InAFileSystem(Gated):
    rows = SparkSpout(gated, "n bigint", rows=500, storage=os.environ.get("ARDEA_TEST_STORAGE")).spec(par=2)
