"""The author's ``KafkaSpout``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ardea.component import Inputs, Spec, Spout, Stream
from ardea.kafka.marks import PartitionId
from ardea.kafka.reading import RecordSpout
from ardea.kafka.sharing import Topics
from ardea.kafka.source import (
    UNDECODABLE,
    UNDECODABLE_FIELDS,
    End,
    Source,
    Start,
    choice_problems,
    end_problems,
    key_and_value,
    position_problems,
    refuse,
    topic_problems,
)
from ardea.watermarks import Timestamps


class KafkaSpout:
    """Reads topics, at least once: ``KafkaSpout("lines", ["line"], lambda m: [m.value().decode()]).spec(par=2)``.

    Guarantees and failures: docs/kafka.md.
    """

    def __init__(
        self,
        topics: str | Sequence[str] | re.Pattern[str],
        outputs: Sequence[str] = ("key", "value"),
        translate: Callable[[Any], Sequence[Any] | None] = key_and_value,
        *,
        translate_batch: Callable[[list[Any]], Any] | None = None,
        group: str | None = None,
        start: Start = "committed",
        otherwise: Start = "earliest",
        end: End | None = None,
        deleted: Literal["fail", "earliest", "latest"] = "fail",
        undecodable: Literal["fail", "skip", "emit"] = "fail",
        timestamps: Timestamps | None = None,
    ) -> None:
        """Nothing is opened.

        Args:
            topics: a name, names, or a pattern that a whole name matches.
            outputs: the fields.
            translate: from a ``confluent_kafka.Message`` to a row; None leaves the record out.
            translate_batch: from a list of messages to a ``pyarrow.RecordBatch``, a row for each; instead of
                ``translate``.
            group: under which offsets are committed; None: ``TOPOLOGY.COMPONENT``.
            start: where a topology begins.
            otherwise: with ``start="committed"``, where partitions begin of which the group knows nothing.
            end: up to where it reads, exclusively, before it finishes; None: it does not finish.
            deleted: what happens where records are gone that would be next.
            undecodable: what happens to records that cannot be translated, or are too large; ``emit``: they go to
                the stream ``undecodable``.
            timestamps: the field with each row's event time, for watermarks by partition (docs/time.md); None: rows
                have none, and there are no watermarks.  :func:`ardea.kafka.record_time` gives the time that a record
                carries itself.

        Raises:
            TopologyError: an argument is wrong; all problems at once.
        """
        names: Topics = [topics] if isinstance(topics, str) else topics
        problems = [
            *topic_problems(names),
            *position_problems("start", start, ("committed", "earliest", "latest")),
            *position_problems("otherwise", otherwise, ("earliest", "latest")),
            *end_problems(end),
            *choice_problems("deleted", deleted, ("fail", "earliest", "latest")),
            *choice_problems("undecodable", undecodable, ("fail", "skip", "emit")),
        ]
        if translate_batch is not None and translate is not key_and_value:
            problems.append("translate= and translate_batch= exclude one another")
        if group is not None and (not isinstance(group, str) or not group):
            problems.append(f"group= takes a name, not {group!r}")
        refuse("KafkaSpout", problems)
        if isinstance(end, Mapping):
            end = {PartitionId(*place): offset for place, offset in end.items()}
        self._fields = [outputs] if isinstance(outputs, str) else list(outputs)
        self._timestamps = timestamps
        self._source = Source(
            names, translate, translate_batch, group, start, otherwise, end, deleted, undecodable
        )  # fmt: skip

    def spec(
        self,
        name: str | None = None,
        par: int = 1,
        inputs: Inputs | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        tasks: int | None = None,
        cpu: float | None = None,
        ram: int | str | None = None,
        disk: int | str | None = None,
    ) -> Spec:
        """Places it in a topology, as :meth:`ardea.Component.spec` does."""
        outputs: list[str | Stream] = [*self._fields]
        if self._source.undecodable == "emit":
            outputs.append(Stream(UNDECODABLE_FIELDS, UNDECODABLE))
        body = {"outputs": outputs, "source": self._source, "timestamps": self._timestamps}
        if self._timestamps is not None and self._timestamps.field in self._fields:
            body["stamped"] = self._fields.index(self._timestamps.field)
        cls: type[Spout] = type("KafkaSpout", (RecordSpout,), body)
        return cls.spec(name, par, inputs, config, tasks=tasks, cpu=cpu, ram=ram, disk=disk)
