"""The order of emission of rows of several streams, which each task that reads more than one of them gets them in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.input_batch import Int


def emission_order(runs: Sequence[tuple[StreamBuffer, int]], ends: dict[int, int]) -> dict[int, Int]:
    """For each stream number, the place of each of its rows among all rows emitted.

    ``runs``: a stream's buffer, and its row from which on it was emitted to; ``ends``: rows by the buffer's identity.
    """
    places: dict[int, list[Int]] = {}
    clock = 0
    following: dict[int, int] = {}
    lengths = [0] * len(runs)
    for i in range(len(runs) - 1, -1, -1):
        buffer, start = runs[i]
        lengths[i] = following.get(id(buffer), ends[id(buffer)]) - start
        following[id(buffer)] = start
    for (buffer, _), length in zip(runs, lengths, strict=True):
        places.setdefault(buffer.number, []).append(np.arange(clock, clock + length, dtype=np.intp))
        clock += length
    return {number: np.concatenate(parts) for number, parts in places.items()}


def interleaved(
    target: int, parts: list[tuple[StreamBuffer, Int | None]], order: dict[int, Int]
) -> Iterator[tuple[int, StreamBuffer, Int | None]]:
    """(task, buffer, rows): runs of one stream each for a task that gets rows of several."""
    clock = [order[b.number] if picked is None else order[b.number][picked] for b, picked in parts]
    owner = np.repeat(np.arange(len(parts)), [len(c) for c in clock])
    place = np.concatenate([np.arange(len(c), dtype=np.intp) for c in clock])
    sequence = np.argsort(np.concatenate(clock), kind="stable")
    owner, place = owner[sequence], place[sequence]
    cuts = [0, *(np.flatnonzero(owner[1:] != owner[:-1]) + 1).tolist(), len(owner)]
    for start, end in pairwise(cuts):
        buffer, picked = parts[int(owner[start])]
        run = place[start:end]
        yield target, buffer, run if picked is None else picked[run]
