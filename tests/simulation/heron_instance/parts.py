"""What the tests of this folder share."""

from __future__ import annotations

from ardea import Bolt, Spout


class Numbering(Spout):
    """Each emit carries the number of emits before it and a word: what arrives out of order shows."""

    outputs = ["n", "word"]
    rows = 0

    def initialize(self, config, context):
        self.n = self.open = 0

    def say(self, word, tup_id=None):
        self.emit([self.n, word], tup_id=tup_id)
        self.n += 1
        self.open += tup_id is not None


class Copy(Bolt):
    outputs = ["n", "word"]

    def process(self, tup):
        self.emit(list(tup.values))


def numbers(cluster_or_result, component):
    """The first values of what a bolt got, in order."""
    record = getattr(cluster_or_result, "record", cluster_or_result)
    return [values[0] for values in record.inputs(component)]
