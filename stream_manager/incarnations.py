"""What follows when somebody is heard in a new incarnation: a task, or the manager of another container."""

from __future__ import annotations

from collections.abc import Mapping

from ardea.errors import refused
from ardea.protocol.ids import column
from ardea.protocol.incarnations import admission_of, incarnation
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import TASKS, Header, Hello, Refusal, Tasks
from ardea.stream_manager.ack_routes import AckRoutes
from ardea.stream_manager.hellos import Hellos
from ardea.stream_manager.inputs import Inputs
from ardea.stream_manager.members import Members
from ardea.stream_manager.output_credit import Outputs
from ardea.stream_manager.rows import Rows
from ardea.stream_manager.verdicts import Verdicts


class Incarnations:
    """Meets one manager's members, again in each of their lives."""

    def __init__(
        self,
        members: Members,
        hellos: Hellos,
        rows: Rows,
        inputs: Inputs,
        outputs: Outputs,
        verdicts: Verdicts,
        routes: AckRoutes,
    ) -> None:
        self._members = members
        self._hellos = hellos
        self._rows = rows
        self._inputs = inputs
        self._outputs = outputs
        self._verdicts = verdicts
        self._routes = routes

    # --- hellos -----------------------------------------------------------------------------------------------

    def hello(self, link: Link) -> None:
        """To another manager."""
        self._hellos.to_manager(link, self._members.local_lives)

    def welcome(self, link: Link) -> None:
        """To a local task; one that was ever heard hears the plan, as soon as it goes on if it stands still."""
        self._hellos.to_instance(link)
        if link.peer:
            self._hellos.inform(self._members.outboxes[link], self._members.lives)

    def met(self, link: Link, header: Header, hello: Hello, now: float) -> None:
        """The other end of the link says who it is."""
        if self._hellos.refuses_version(link, header.sender, hello):
            return
        if self._members.was_left_out(link, header.sender):
            why = f"a plan had left {link.name} out, and the present one has it again: it begins a new life"
            link.refuse(header.sender, Refusal(code="LEFT_OUT", message=why, definite=True))
            return
        if hello.task:
            self._met_instance(link, header, hello, now)
        elif not self._hellos.refuses(link, hello):
            self._met_manager(link, header, hello, now)

    def _met_instance(self, link: Link, header: Header, hello: Hello, now: float) -> None:
        if hello.build != self._hellos.build:
            return  # it is about to be started again with the present code, or this manager about to hear of it
        if header.sender < link.peer:
            return  # a former life that goes on; whoever answered it would be asked again
        task = link.key
        if self._members.met(link, header.sender, now) is not None:
            self._outputs.restart(task)
            self._verdicts.reborn(task)
            self._routes.failed(column(hello.died_on), now)  # before all it had is lost
            # One number for the whole topology: the container's admission and the instance's own life.
            self.risen(task, incarnation(admission_of(self._members.me), header.sender), now)
            self.welcome(link)
            self._rows.tell_paces(task)
        else:
            self._hellos.to_instance(link)  # which it has not heard yet; the rest is on its way

    def _met_manager(self, link: Link, header: Header, hello: Hello, now: float) -> None:
        members, risen = self._members, header.sender > link.peer > 0
        left = members.met(link, header.sender, now)
        if left is not None:
            self._routes.undelivered(left, now)
            if risen:
                self._left_behind(link.key, now)
                self._inputs.sender_met(link.key, header.sender)
            self.named(link, hello.tasks, now)
            # The hello that the peer heard may be older than some of these.
            members.outboxes[link].newest(
                "tasks", Header(kind=TASKS), [Tasks(lives=members.local_lives).SerializeToString()]
            )
        if header.receiver != members.me:
            self.hello(link)

    def refused(self, link: Link, header: Header, refusal: Refusal) -> None:
        """By a manager.  If it works by another plan, one of the two is about to get the other's.

        A refusal of this container's former life, which may have been of another version, is not this one's.

        Raises:
            OtherVersion: it has another version.
            LeftOut: this manager has to begin again.
        """
        is_mine = header.receiver == self._members.me and self._members.peers.get(link.key) is link
        if refusal.code in ("OTHER_VERSION", "LEFT_OUT") and is_mine:
            raise refused(refusal.code, f"{link.name} refuses this manager: {refusal.message}")

    # --- tasks ------------------------------------------------------------------------------------------------

    def named(self, link: Link, lives: Mapping[int, int], now: float) -> None:
        """Another manager says which of its tasks are there."""
        for task, life in self._members.named(link.key, lives):
            self.risen(task, life, now)

    def risen(self, task: int, life: int, now: float) -> None:
        """A task's incarnation as somebody knows it."""
        former = self._members.risen(task, life)
        if former is None:
            return
        self._rows.restart(task)
        self._inputs.restart(task, life)
        if life > former > 0:
            self._rows.forsake(task, now)
            self._verdicts.lose_through(self._members.plan.tasks[task].component)
            self._inputs.forget_pause(task)
        self._rows.release(task, now)

    def _left_behind(self, container: int, now: float) -> None:
        for task in self._members.left_behind(container):
            self._rows.close(task.task)
            self._rows.forsake(task.task, now)  # rows that wait from now on are of trees that come again
            self._verdicts.lose_through(task.component)
