"""A forkserver forks nothing any more when another version of Ardea has been installed under it."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from ardea import forkserver
from ardea.supervision.forkserver import DESCRIPTORS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each process is started for itself")


@pytest.fixture
def asked():
    """The forkserver's end of a connection with one request on it."""
    supervisor, connection = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with Path(os.devnull).open() as nothing, supervisor, connection:
        socket.send_fds(supervisor, [b"{}"], [nothing.fileno()] * DESCRIPTORS)
        yield connection


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The file that tells versions apart."""
    file = tmp_path / "versions.py"
    file.write_bytes(b"FORMAT = 2")
    monkeypatch.setattr(forkserver, "VERSION", file)
    return file


@pytest.fixture
def forks(monkeypatch):
    made = []
    monkeypatch.setattr(forkserver, "_fork", made.append)
    return made


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "removed"])
def test_it_ends_when_another_version_is_in_its_place(asked, installed, forks, replaced):
    loaded = installed.read_bytes()
    installed.write_bytes(b"FORMAT = 3") if replaced else installed.unlink()
    with pytest.raises(OSError, match="another version of Ardea" if replaced else "No such file"):
        forkserver._serve(asked, loaded)
    assert forks == []


def test_the_version_that_it_has_loaded_is_forked(asked, installed, forks):
    request, descriptors = forkserver._serve(asked, installed.read_bytes())
    for descriptor in descriptors:
        os.close(descriptor)
    assert request == {}
    assert forks == [asked]
