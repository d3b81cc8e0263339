"""What is said of the exceptions that a bolt raises, and which of them no tuple could pass."""

from __future__ import annotations

import traceback

from ardea.errors import FailedException, UserError, printable
from ardea.heron_instance.broken_rows import tree_name
from ardea.heron_instance.input_batch import InputBatch
from ardea.heron_instance.runner import Parts
from ardea.loader import place_of
from ardea.shortened import shortened


class RaisedErrors:
    """Of one task.  ``processed`` counts rows, with an exception or without."""

    def __init__(self, parts: Parts) -> None:
        self._env, self._reporter = parts.env, parts.reporter
        self.processed = 0
        self._failed = 0  # rows, of this life

    def note(self, batch: InputBatch, rows: range, error: Exception, ahead: int) -> str:
        """``process`` has raised it for these rows, ``ahead`` after those processed; returns what the master hears.

        A mistake that every tuple would meet is raised, unless one has passed; dead letters are for some of many.
        """
        passed = self.processed + ahead > self._failed or self._env.settings.max_tuple_replays is not None
        if isinstance(error, UserError) and error.certain and not passed:
            raise error
        self._failed += len(rows)
        if isinstance(error, FailedException):
            return ""
        task, tree, origin = self._env.task.name, batch.root_of(rows.start), _origin(batch, rows)
        self._env.instruments.exception(error)
        text = printable("".join(traceback.format_exception(error)).rstrip(), most=20_000)
        self._env.component.logger.error("%s failed on %s:\n%s", task, origin, text)
        what = f"{type(error).__name__}: {printable(error)} at {place_of(error)}"
        said = f"{task} raised {what} ({origin})"
        self._reporter.raised(said, tree)
        self._reporter.exceptions.note(error, text, origin)
        self._env.observer.raised(error, batch, rows)
        return said


def _origin(batch: InputBatch, rows: range) -> str:
    """Which tuple it was; of a whole batch the first one."""
    first, tree = batch.id_of(rows.start), batch.root_of(rows.start)
    which = f"tuple {first}" if len(rows) == 1 else f"the first of {len(rows)} tuples, {first}"
    values = shortened(batch.shown(rows.start))
    return f"{which} of {batch.component}, stream {batch.stream}: {values}" + (
        f"; tree {tree_name(tree)}" if tree else ""
    )
