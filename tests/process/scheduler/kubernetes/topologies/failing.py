"""Fails with a reason that an author can read; the log says more."""

from __future__ import annotations

from ardea import Bolt, Spout, Topology, UserError


class Rows(Spout):
    outputs = ["row"]

    def next_tuple(self):
        self.emit(["x"], tup_id=1)
        self.finish()


class Refuses(Bolt):
    def process(self, tup):
        pass

    def end_of_input(self):
        self.logger.error("debit 3, credit 2")
        raise UserError("the ledger does not balance")


class Failing(Topology):
    rows = Rows.spec()
    refuses = Refuses.spec(inputs=[rows])
