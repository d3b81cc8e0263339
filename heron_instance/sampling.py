"""A task looks at its own threads: their stacks now, or where they spend some seconds (docs/debugging.md)."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType

from ardea.errors import printable
from ardea.protocol.inspection import Frame, Node, Thread

INTERVAL = 0.01
"""Seconds between two samples."""
LEAST_IDLE = 20
"""Times as long as a sample takes lie between two: with many or deep threads it takes a twentieth, at most."""
PROMPT, APART = 1e-5, (2e-4, 12e-4)
"""Seconds in which a thread gives the interpreter to the sampler, and for which it then sleeps."""
DEEPEST, MOST_NODES, MOST_THREADS = 100, 4000, 256
GATEWAY = "gateway"
"""What the main thread does."""


def threads() -> Iterator[tuple[str, bool, int, FrameType]]:
    """Name, whether it is a daemon, number and innermost frame of all threads, in the order of their names."""
    known = {thread.ident: thread for thread in threading.enumerate()}
    main = threading.main_thread()
    found = []
    for ident, frame in sys._current_frames().items():
        thread = known.get(ident)
        name = GATEWAY if thread is main else f"thread {ident}" if thread is None else thread.name
        found.append((name, thread is None or thread.daemon, ident, frame))
    return iter(sorted(found, key=lambda each: each[0])[:MOST_THREADS])


def stacks() -> list[Thread]:
    """Of all threads, the caller's too."""
    return [Thread(_shown(name), daemon, _frames(frame)) for name, daemon, _, frame in threads()]


def _frames(frame: FrameType | None) -> list[Frame]:
    found: list[Frame] = []
    while frame is not None and len(found) < DEEPEST:
        found.append(Frame(_shown(frame.f_code.co_qualname), _shown(frame.f_code.co_filename), frame.f_lineno or 0))
        frame = frame.f_back
    return found[::-1]


def _shown(name: str) -> str:
    return printable(name, most=300)


class Calls:
    """A function, and what it called, by the code of the latter."""

    __slots__ = ("called", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self.called: dict[CodeType | str, Calls] = {}


class Tree:
    """The samples of one profile; of bounded depth and size, whatever the code is."""

    def __init__(self) -> None:
        self.root = Calls()
        self.cut = 0
        self._nodes = 0

    def add(self, thread: str, frame: FrameType | None) -> None:
        """One sample of a thread."""
        codes: list[CodeType | str] = []
        while frame is not None:
            codes.append(frame.f_code)
            frame = frame.f_back
        self.root.samples += 1
        at = self.root
        for depth, code in enumerate((thread, *reversed(codes))):
            below = at.called.get(code)
            if below is None:
                if depth > DEEPEST or self._nodes >= MOST_NODES:
                    self.cut += 1
                    return
                self._nodes += 1
                below = at.called[code] = Calls()
            below.samples += 1
            at = below

    def document(self, task: str, seconds: float, least: int) -> Node:
        """The tree below ``task``; ``seconds`` a sample.  What has fewer than ``least`` samples is left out."""

        def node(code: CodeType | str, calls: Calls) -> Node:
            name, file, line = (
                (code, "", 0) if isinstance(code, str) else (code.co_qualname, code.co_filename, code.co_firstlineno)
            )
            shown = [(inner, below) for inner, below in calls.called.items() if below.samples >= least]
            shown.sort(key=lambda each: -each[1].samples)
            below = [node(inner, those) for inner, those in shown]
            return Node(_shown(name), _shown(file), line, round(calls.samples * seconds, 6), calls.samples, below)

        return node(task, self.root)


def _wait_for_any_moment() -> None:
    """No function is seen more often because it gives the interpreter away, as each that writes to a socket does.

    Who wants the interpreter gets it where another thread gives it away, or else after the switch interval: a random
    time lies between the former and the sample, and that is short meanwhile.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(PROMPT)
    try:
        time.sleep(random.uniform(*APART))
    finally:
        sys.setswitchinterval(usual)


class Sampler:
    """The thread that looks at all others for some seconds."""

    def __init__(self, seconds: float, done: Callable[[Tree, int, float], None]) -> None:
        """``done``: called on the thread, with the tree, how often all were looked at, and how long it took."""
        self._seconds, self._done = seconds, done
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        """Once."""
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether it looks."""
        return self._thread.is_alive()

    def _run(self) -> None:
        tree, times = Tree(), 0
        began = now = time.perf_counter()
        while now < began + self._seconds:
            _wait_for_any_moment()
            worked = time.thread_time()
            for name, _, number, frame in threads():
                if number != threading.get_ident():
                    tree.add(name, frame)
            times += 1
            worked = time.thread_time() - worked
            time.sleep(min(max(INTERVAL, LEAST_IDLE * worked), max(0.0, began + self._seconds - time.perf_counter())))
            now = time.perf_counter()
        self._done(tree, times, now - began)
