"""What a ZooKeeper with TLS and SASL needs: a CA and its certificates, users, and lines of its configuration."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.machine import patient

CONFIG = """\
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
secureClientPort={port}
secureClientPortAddress={address}
ssl.keyStore.location={folder}/server.pem
ssl.trustStore.location={folder}/ca.crt
ssl.trustStore.type=PEM
authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
{more}
"""
USERS = 'Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required user_ardea="{}" user_other="o"; }};'


def _openssl(*arguments: str | Path, folder: Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], cwd=folder, check=True, capture_output=True, timeout=patient(30))


def certificates(folder: Path, ca: str = "ca", host: str = "IP:127.0.0.1") -> None:
    """A CA, and certificates of that host that it has signed: ``server.pem``, ``client.crt`` and ``client.key``."""
    key = "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"
    names = "-addext", "basicConstraints=critical,CA:TRUE"
    _openssl("req", "-x509", *key, *names, "-subj", f"/CN={ca}", "-keyout", "ca.key", "-out", "ca.crt", folder=folder)
    (folder / "names").write_text(f"subjectAltName={host}")
    signed = "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names"
    for who in ("server", "client"):
        _openssl("req", *key, "-subj", f"/CN={who}", "-keyout", f"{who}.key", "-out", f"{who}.csr", folder=folder)
        _openssl("x509", "-req", "-in", f"{who}.csr", *signed, "-out", f"{who}.crt", folder=folder)
    (folder / "server.pem").write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())
