"""A committer that stands still in the middle of its second transaction: ``python frozen.py STATE KIND PLACE...``.

It prints what it wrote, or that it could not.
"""

from __future__ import annotations

import os
import signal
import sys

from ardea.errors import ArdeaError
from ardea.trident import MemcachedState, RedisState, SqliteState

STATES = {"sqlite": SqliteState, "redis": RedisState, "memcached": MemcachedState}


def main() -> None:
    backend, kind, *place = sys.argv[1:]
    state = getattr(STATES[backend], kind)(*place).make_state({}, 0, 1)

    def first(stored: int | None) -> int:
        return (stored or 0) + 1

    def second(stored: int | None) -> int:
        os.kill(os.getpid(), signal.SIGSTOP)  # it has read, and not yet written
        return (stored or 0) + 1

    state.begin_commit(1)
    state.multi_update([("a",), ("b",)], [first, first])
    state.commit(1)
    state.begin_commit(2)
    try:
        print("wrote", state.multi_update([("a",), ("new",)], [first, second]))
    except ArdeaError as error:
        print("refused:", error.message)
    finally:
        state.close()


if __name__ == "__main__":
    main()
