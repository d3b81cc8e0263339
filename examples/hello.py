"""The smallest topology: three greetings, and then it ends.

ardea run examples/hello.py --logs greet
python examples/hello.py
"""

from __future__ import annotations

import ardea
from ardea import Bolt, Spout, Topology


class Names(Spout):
    outputs = ["name"]

    def next_tuple(self):
        for number, name in enumerate(["ann", "bob", "carla"]):
            self.emit([name], tup_id=number)  # with an id it is tracked: acked, or emitted again
        self.finish()  # nothing more will come


class Greet(Bolt):
    def process(self, tup):
        print(f"hello, {tup['name']}")


class Hello(Topology):
    names = Names.spec()
    greet = Greet.spec(inputs=[names])
    config = {"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2}  # on a cluster


if __name__ == "__main__":
    ardea.run(Hello, logs=["greet"]).raise_for_state()
