"""Chromium on a console, with axe-core, which knows the rules of WCAG.

axe-core has the Mozilla Public License 2.0; only these tests use it, from the package axe-core-python.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_core_python
import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service

from tests.process.waiting import eventually, heirs

SHOTS = Path(__file__).parents[3] / "build" / "console"
HEIGHT = 900
_DRAWN = "return document.getElementById('head')?.hasChildNodes()"
_AXE = next(Path(axe_core_python.__file__).parent.rglob("axe.min.js"))
_RULES = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']"
_WHAT = "{exclude: [['.log > .line:nth-child(n+10)']]}"  # thousands of lines are all alike
_CHECK = (
    f"const done = arguments[0]; axe.run({_WHAT}, {{runOnly: {_RULES}}}).then(done, (error) => done(String(error)))"
)


class Browser:
    """One page.  ``width`` in pixels; ``scheme`` is ``light`` or ``dark``."""

    def __init__(self, driver: webdriver.Chrome, width: int, scheme: str) -> None:
        self._driver, self._width, self._scheme = driver, width, scheme
        self._size(HEIGHT)
        scheme_of_system = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme_of_system)

    def open(self, link: str) -> None:
        """Until it is drawn: a network that changes, as clusters beside it do, ends requests."""
        eventually(lambda: self._opened(link), 60, lambda: f"{link} is there: {self._log()}")
        eventually(lambda: self.run(_DRAWN), 60, lambda: f"the page is drawn: {self._log()}")

    def again(self) -> None:
        """As with F5."""
        self._driver.refresh()

    def go(self, route: str) -> None:
        self.run("location.hash = arguments[0]", route)

    def run(self, script: str, *arguments: object) -> Any:
        return self._driver.execute_script(script, *arguments)

    def awaited(self, script: str, *arguments: object) -> Any:
        """What a script gives to its last argument, a function, within a minute."""
        return self._driver.execute_async_script(script, *arguments)

    def text(self) -> str:
        return self.run("return document.body.innerText") or ""

    def shows(self, *texts: str, seconds: float = 60) -> None:
        def missing() -> list[str]:
            shown = self.text()
            return [text for text in texts if text not in shown]

        eventually(lambda: not missing(), seconds, lambda: f"{missing()} in:\n{self.text()[:3000]}\n{self._log()}")

    def press(self, words: str) -> None:
        """A button, by what stands on it."""
        script = "return [...document.querySelectorAll('button')].filter((b) => b.innerText === arguments[0]).at(-1)"
        eventually(lambda: self.run(script, words), 60, f"a button {words}").click()

    def fill(self, label: str, value: object) -> None:
        """A field, by its label."""
        script = (
            "return [...document.querySelectorAll('label')].filter((l) => l.innerText === arguments[0]).at(-1)?.control"
        )
        field = eventually(lambda: self.run(script, label), 60, f"a field {label}")
        self.run("arguments[0].value = arguments[1]", field, str(value))

    def saves_into(self, folder: Path) -> None:
        """Where files go that are downloaded."""
        self._driver.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})

    def violations(self) -> list[str]:
        """What WCAG 2.1 A and AA have against the page as it is now."""
        self.run(_AXE.read_text())
        found = self.awaited(_CHECK)
        assert isinstance(found, dict), found
        return [f"{each['id']}: {[node['target'] for node in each['nodes']]}" for each in found["violations"]]

    def complaints(self) -> list[str]:
        """What scripts have raised, and what the policy has refused."""
        return [each["message"] for each in self._log() if each["source"] != "network"]

    def before(self, script: str) -> None:
        """Runs before the scripts of each page that is opened from now on."""
        self._driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})

    def without(self, *links: str) -> None:
        """Requests for these get no answer; ``*`` stands for anything, none: all go again."""
        self._driver.execute_cdp_cmd("Network.enable", {})
        self._driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": links})

    def keep(self, name: str) -> None:
        """A picture of the whole page, for people."""
        self._size(max(HEIGHT, min(4000, int(self.run("return document.documentElement.scrollHeight")))))
        SHOTS.mkdir(parents=True, exist_ok=True)
        self._driver.save_screenshot(str(SHOTS / f"{name}-{self._width}-{self._scheme}.png"))
        self._size(HEIGHT)

    def wide(self) -> bool:
        """Whether the page itself has to be scrolled sideways."""
        return bool(self.run("return document.documentElement.scrollWidth > innerWidth"))

    def _opened(self, link: str) -> bool:
        try:
            self._driver.get(link)
        except WebDriverException as error:
            if "ERR_NETWORK_CHANGED" not in str(error):
                raise
            return False
        return True

    def _log(self) -> list[dict[str, Any]]:
        """What has come since it was asked for last."""
        return list(self._driver.get_log("browser"))

    def _size(self, height: int) -> None:
        size = {"width": self._width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@contextmanager
def browser(width: int = 1280, scheme: str = "light") -> Iterator[Browser]:
    """Ends with all that it has started."""
    programs = [shutil.which("chromium"), shutil.which("chromedriver")]
    if None in programs:
        pytest.fail("no chromium and chromedriver on the PATH: run `make .venv/.system`")
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs[0])
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(prefix="browser-") as folder:
        environment = {**os.environ, "TMPDIR": folder}
        driver = webdriver.Chrome(options=options, service=Service(str(programs[1]), env=environment))
        try:
            driver.set_script_timeout(180)  # axe looks at every element
            yield Browser(driver, width, scheme)
        finally:
            driver.quit()
            eventually(lambda: not heirs(f"TMPDIR={folder}"), 20, "its helpers have followed the browser")
