"""Runs in a pod of its own, beside the topologies of the tests: keeps what they write, whatever becomes of their pods.

A request is a line, and so is its answer: ``number N`` keeps a number, ``keep N`` the spout's low-water mark, ``low``
asks for it; ``end N``: whether to stop, and where, if so (never below N); ``enough`` says so; ``missing`` lists what
has not come below the end; ``seen`` how many have, ``again`` how often one came that had come before, and ``most`` how
often the one that came most often.
"""

from __future__ import annotations

import socketserver
import threading
from collections import Counter

numbers: Counter[int] = Counter()
state = {"low": 0, "enough": 0, "end": None, "again": 0}
lock = threading.Lock()


def answer(request):
    word, _, argument = request.partition(" ")
    if word == "number":
        state["again"] += int(argument) in numbers
        numbers[int(argument)] += 1
    elif word == "keep":
        state["low"] = max(state["low"], int(argument))
    elif word == "low":
        return state["low"]
    elif word == "enough":
        state["enough"] = 1
    elif word == "end":
        if state["enough"] and state["end"] is None:
            state["end"] = int(argument)
        return "none" if state["end"] is None else state["end"]
    elif word == "missing":
        return sorted(set(range(state["end"] or 0)) - numbers.keys())[:10]
    elif word == "seen":
        return len(numbers)
    elif word == "again":
        return state["again"]
    elif word == "most":
        return max(numbers.values(), default=0)
    return "ok"


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            with lock:
                said = answer(line.decode().strip())
            self.wfile.write(f"{said}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    Server(("", 9000), Handler).serve_forever()
