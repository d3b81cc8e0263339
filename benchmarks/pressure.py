"""What back pressure costs while nobody needs it: the same topology with it and without, in turn."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.results import BenchmarkError, Case, Comparison, Result, Round, compare

NEEDED = "needed"
"""A file of this name says that somebody's queue was too long: such a round says nothing."""
WITH = f"""\
import sys

if "ardea.stream_manager" in sys.orig_argv:
    from pathlib import Path

    from ardea.stream_manager.pauses import BackPressure

    announce = BackPressure.announce

    def needed(*args):
        Path(__file__).with_name({NEEDED!r}).touch()
        announce(*args)

    BackPressure.announce = needed
"""
WITHOUT = """\
import sys

if "ardea.stream_manager" in sys.orig_argv:
    from ardea.stream_manager.pauses import BackPressure

    def nothing(*args):
        pass

    BackPressure.judge = BackPressure.announce = BackPressure.apply = nothing
"""


def rounds(case: Case, count: int, run: Callable[[Case], Result]) -> Comparison:
    """So many pairs; every second one begins without.

    Raises:
        BenchmarkError: a run gave no result, or back pressure was needed.
    """
    pairs = []
    for number in range(count):
        rates = {}
        for how in (WITH, WITHOUT) if number % 2 == 0 else (WITHOUT, WITH):
            with _customised(how) as folder:
                rates[how] = run(case).words_per_second
                if (folder / NEEDED).exists():
                    raise BenchmarkError("a task had more waiting than it may have", hint="Take fewer --pending.")
        pairs.append(Round(rates[WITH], rates[WITHOUT]))
    return compare(pairs, "the same without back pressure", case)


@contextmanager
def _customised(code: str) -> Iterator[Path]:
    """Every process that is started meanwhile runs this before anything else."""
    former = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(prefix="ardea-benchmark-") as folder:
        (Path(folder) / "sitecustomize.py").write_text(code)
        os.environ["PYTHONPATH"] = folder if former is None else f"{folder}{os.pathsep}{former}"
        try:
            yield Path(folder)
        finally:
            if former is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = former
