"""Whoever asks ends when it is told to, whatever comes at the same moment."""

from __future__ import annotations

import asyncio

import pytest

from ardea.console.asking import Asker
from ardea.console.questions import LIST
from ardea.console.readings import Answer, Pace


@pytest.mark.parametrize("steps", range(5))
@pytest.mark.parametrize("what", ["run", "news"])
def test_it_ends_though_news_come_with_the_end(what, steps):
    async def go() -> bool:
        asker = Asker({"list": lambda *_: Answer([])}, {"list": Pace()})
        loop = asyncio.ensure_future(asker.run() if what == "run" else _listens(asker))
        for _ in range(10):
            await asyncio.sleep(0)
        asker.want(LIST) if what == "run" else asker._news.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        loop.cancel()
        done, _ = await asyncio.wait([loop], timeout=10)
        loop.cancel()
        await asyncio.wait([loop], timeout=5)
        return bool(done)

    assert asyncio.run(go())


async def _listens(asker: Asker) -> None:
    while True:
        await asker.news(1.0)
        await asyncio.sleep(0.01)
