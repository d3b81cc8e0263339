"""The user's state directory: the state manager's files, and a folder for each topology that runs or ran here.

DIR/state            the state manager
DIR/local/ID         logs, lives and exits of the topology ID
DIR/local/ID/run.lock  held by whoever keeps its processes

With the state in ZooKeeper, DIR is ~/.ardea and has no state in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

from ardea.config import Settings
from ardea.errors import ArdeaError, ClusterError, NotFound, StateError, UserError, is_text, printable
from ardea.plan.definition import Definition
from ardea.snapshots.place import Files, files_at
from ardea.state import StateManager, open_state, paths, topologies
from ardea.state.address import SCHEME, folder_of
from ardea.state.disk import Disk, explain
from ardea.state.files import is_locked
from ardea.state.topologies import TopologyStatus

DEFAULT = "~/.ardea"
KEPT_RUNS = 20


class Home:
    """One state directory; nothing is touched before it is needed."""

    def __init__(self, address: Path | str = DEFAULT, *, files: Path | str = DEFAULT) -> None:
        """``address``: the directory, or where a ZooKeeper is; then ``files`` is the directory.  ``~`` is expanded.

        Raises:
            UserError: it names neither; or it is a file, or belongs to neither this user nor root.
        """
        hint = f"--state (or ARDEA_STATE) takes a directory, made if it is missing, or {SCHEME}://HOST:PORT/ROOT"
        if not str(address).strip():
            raise UserError("the state directory has no name", hint=hint)
        folder = folder_of(str(address))
        try:
            self.root = Path(folder or files).expanduser().absolute()
            is_file = self.root.is_file()
            owner = self.root.stat().st_uid if self.root.exists() else os.geteuid()
        except (OSError, RuntimeError) as error:  # a name that is too long, or the home of nobody
            reason = error.strerror if isinstance(error, OSError) else error
            raise UserError(f"the state directory {address} cannot be used: {reason}", hint=hint) from error
        if not is_text(str(self.root)):
            what = f"the state directory {printable(self.root)} has a name that is no UTF-8"
            raise UserError(what, hint="--state DIR names another directory")
        if is_file:
            raise UserError(f"the state directory {self.root} is a file", hint=hint)
        if owner not in (os.geteuid(), 0):
            raise UserError(
                f"the state directory {self.root} belongs to user {owner}, who could have this one run anything",
                hint="--state DIR names another directory; `sudo -u` works as its owner",
            )
        self.address = str(self.root if folder else address)
        self.state_url = str(self.root / "state") if folder else self.address

    def open_state(self) -> StateManager:
        """The state manager of this directory."""
        return open_state(self.state_url)

    def folder(self, topology_id: str) -> Path:
        """Where the files of one topology lie."""
        return self.root / "local" / topology_id

    def folders(self) -> list[Path]:
        """Those that are there, the newest first."""
        try:
            there = [each for each in (self.root / "local").iterdir() if each.is_dir()]
            found = [(folder.stat().st_ctime, folder) for folder in there]
        except FileNotFoundError:
            return []
        return [folder for _, folder in sorted(found, reverse=True)]

    def find(self, name_or_id: str) -> Path:
        """The folder of that id; else the newest of that name, finished or not.

        Raises:
            NotFound: nothing of that name has run here.
        """
        folders = self.folders()
        for folder in folders:
            if folder.name == name_or_id:
                return folder
        for folder in folders:
            if paths.name_of(folder.name) == name_or_id:
                return folder
        known = ", ".join(sorted({paths.name_of(folder.name) for folder in folders}))
        raise NotFound(
            f"no topology {name_or_id} has run here; {self.root} knows {known or 'none'}",
            hint="--state DIR names another state directory",
        )

    def topology(self, state: StateManager, name_or_id: str) -> TopologyStatus:
        """What the state knows of that name or id.

        Raises:
            NotFound: nothing; if it has run here, the hint says where its logs are.
        """
        try:
            return topologies.find(state, name_or_id)
        except NotFound as error:
            unknown = error
        try:
            folder = self.find(name_or_id)
        except NotFound:
            raise unknown from None
        raise NotFound(
            f"{unknown.message}; {folder.name} ran here, and is gone from the state",
            hint=f"`ardea logs {name_or_id}` prints its logs; {unknown.hint}",
        )

    def make(self, folder: Path | None = None) -> None:
        """Makes the directory, or a folder below it, for this user only; what is there stays as it is."""
        Disk().make_directory(folder or self.root)

    def exposed(self) -> list[Path]:
        """The directory, and its own two, where others may write: they could have this user run anything."""
        found = (self.root, self.root / "state", self.root / "local")
        return [folder for folder in found if folder.exists() and folder.stat().st_mode & 0o022]

    def make_folder(self, topology_id: str) -> Path:
        """A new topology's folder, for this user only.

        Raises:
            StateError: it cannot be made.
        """
        folder = self.folder(topology_id)
        try:
            self.make(folder.parent)
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise self.refusal(error) from error
        return folder

    def refusal(self, error: OSError) -> StateError:
        """What a failed write below the directory means."""
        return explain(error, "write the topology's files", self.root, "nothing was started")

    def forget(self, state: StateManager, topology_id: str, *, snapshots: bool = True) -> None:
        """Removes a topology that is gone from the state, and ``snapshots`` with it; savepoints and logs stay.

        Raises:
            Conflict, NotFound: as for :func:`ardea.state.topologies.remove`; nothing was changed.
        """
        topologies.remove(state, topology_id)
        if snapshots:
            self._remove_snapshots(topology_id)

    def snapshots(self, topology_id: str) -> Files:
        """The store of a topology whose folder is here.

        Raises:
            UserError, StateError: it cannot be found or used.
        """
        definition = Definition.read(self.folder(topology_id) / "definition")
        storage = Settings.of(definition.shape.config).snapshot_storage
        return files_at(storage, definition.state, topology_id)

    def _remove_snapshots(self, topology_id: str) -> None:
        """As far as it can be: what is left takes room, and nothing else."""
        with contextlib.suppress(OSError, ArdeaError):
            self.snapshots(topology_id).remove()

    def prune(self, keep: int = KEPT_RUNS) -> list[Path]:
        """Removes the folders of all finished runs but the newest, and what snapshots they left; returns them."""
        finished = [folder for folder in self.folders() if not is_held(folder)]
        for folder in finished[keep:]:
            self._remove_snapshots(folder.name)
            shutil.rmtree(folder, ignore_errors=True)
        return finished[keep:]


def hold(folder: Path) -> int:
    """Takes a topology's folder; returns the file descriptor whose closing lets it go.

    Raises:
        ClusterError: another process keeps this topology.
    """
    fd = os.open(folder / "run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise ClusterError(f"{folder} is in use: another process keeps this topology; nothing was started") from None
    return fd


def is_held(folder: Path) -> bool:
    """Whether somebody keeps the topology of this folder."""
    return is_locked(folder / "run.lock")
