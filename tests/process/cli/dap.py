"""A debugger: as much of the Debug Adapter Protocol as it takes to stop at a line and read a variable."""

from __future__ import annotations

import itertools
import json
import socket
from collections import deque
from typing import Any, Self

from tests.process.waiting import eventually


class Debugger:
    """Attached to a process that listens on a port of loopback."""

    def __init__(self, port: int, seconds: float = 60) -> None:
        self._socket = eventually(lambda: _connected(port), seconds, f"somebody listens on {port}")
        self._socket.settimeout(30)
        self._file = self._socket.makefile("rb")
        self._numbers = itertools.count(1)
        self._events: deque[dict[str, Any]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def attach(self, file: str, line: int) -> None:
        """With a breakpoint; the process goes on."""
        self.ask("initialize", adapterID="test", pathFormat="path")
        attached = self._send("attach", justMyCode=False)
        self.event("initialized")
        self.ask("setBreakpoints", source={"path": file}, breakpoints=[{"line": line}])
        self.ask("configurationDone")
        self._answer(attached)

    def stopped(self) -> dict[str, Any]:
        """The uppermost frame of the thread that has stopped."""
        thread = self.event("stopped")["threadId"]
        return dict(self.ask("stackTrace", threadId=thread)["stackFrames"][0], thread=thread)

    def value(self, frame: dict[str, Any], expression: str) -> str:
        return str(self.ask("evaluate", frameId=frame["id"], expression=expression)["result"])

    def go_on(self, frame: dict[str, Any]) -> None:
        """Without the breakpoint."""
        self.ask("setBreakpoints", source=frame["source"], breakpoints=[])
        self.ask("continue", threadId=frame["thread"])

    def event(self, name: str) -> dict[str, Any]:
        while True:
            message = self._events.popleft() if self._events else self._read()
            if message["type"] == "event" and message["event"] == name:
                return message.get("body", {})

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        return self._answer(self._send(command, **arguments))

    def _send(self, command: str, **arguments: Any) -> int:
        number = next(self._numbers)
        body = json.dumps({"seq": number, "type": "request", "command": command, "arguments": arguments}).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return number

    def _answer(self, number: int) -> dict[str, Any]:
        while True:
            message = self._read()
            if message["type"] == "response" and message["request_seq"] == number:
                assert message["success"], message
                return message.get("body", {})
            self._events.append(message)

    def _read(self) -> dict[str, Any]:
        length = 0
        while (line := self._file.readline().strip()) or not length:
            name, _, value = line.partition(b": ")
            length = int(value) if name == b"Content-Length" else length
        return dict(json.loads(self._file.read(length)))


def _connected(port: int) -> socket.socket | None:
    try:
        return socket.create_connection(("127.0.0.1", port), 1)
    except OSError:
        return None
