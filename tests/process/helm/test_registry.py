"""Image and chart go through a registry under the names that the pages give them."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ardea import __version__
from tests.machine import patient
from tests.process.waiting import eventually

ROOT = Path(__file__).parents[3]
TOOLS = ("buildah", "docker-registry", "helm")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
BASE = "docker.io/library/python:3.11-slim"

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)}: not on the PATH (Debian has docker-registry)"),
]


def run(*command: object, code: int = 0) -> str:
    """What it prints on stdout and stderr, if it ends with that code."""
    words = [str(word) for word in command]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=patient(600))
    assert bool(ended.returncode) is bool(code), (words, ended.stdout[-2000:], ended.stderr[-2000:])
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of Debian's, without TLS, on this machine."""
    folder = tmp_path_factory.mktemp("registry")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    storage = {"filesystem": {"rootdirectory": str(folder / "data")}}
    settings = {"version": 0.1, "storage": storage, "http": {"addr": address}}
    (folder / "config.yml").write_text(yaml.safe_dump(settings))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["docker-registry", "serve", folder / "config.yml"],
            stdout=log,
            stderr=log,
            env={**os.environ, "OTEL_TRACES_EXPORTER": "none"},
        )
        try:
            eventually(lambda: answers(address), 20, lambda: (folder / "log").read_text())
            yield address
        finally:
            process.terminate()
            process.wait(20)


def answers(address: str) -> bool:
    try:
        return get(address, "") == {}
    except urllib.error.URLError:
        return False


def get(address: str, path: str) -> dict:
    with urllib.request.urlopen(f"http://{address}/v2/{path}", timeout=10) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def base(registry: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image's usual base in the registry, by its digest."""
    digest = tmp_path_factory.mktemp("base") / "digest"
    if subprocess.run(["buildah", "inspect", "--type=image", BASE], capture_output=True, check=False).returncode:
        run("buildah", "pull", "--quiet", BASE)
    target = f"docker://{registry}/library/python:3.11-slim"
    run("buildah", "push", "--quiet", "--tls-verify=false", "--digestfile", digest, BASE, target)
    return f"{registry}/library/python@{digest.read_text().strip()}"


def test_image_and_chart_are_pushed_and_fit_one_another(registry, base):
    """Once on a base that is named by its digest, which the image says."""
    image = f"{registry}/team/ardea:{__version__}"
    try:
        run("make", "-s", "image", "chart", f"PUSH={registry}/team", f"BASE={base}")
        inspected = json.loads(run("buildah", "inspect", "--type=image", image))
        assert inspected["OCIv1"]["config"]["Labels"]["org.opencontainers.image.base.name"] == base
    finally:
        subprocess.run(["buildah", "rmi", image], capture_output=True, check=False)
    assert get(registry, "team/ardea/tags/list")["tags"] == [__version__]
    chart = yaml.safe_load((ROOT / "helm" / "Chart.yaml").read_text())
    assert get(registry, "team/charts/ardea/tags/list")["tags"] == [chart["version"]]

    options = ("--namespace", "streams", "--kube-version", "1.31.0", "--set", f"image.registry={registry}/team")
    pushed = f"oci://{registry}/team/charts/ardea"
    of_the_registry = run("helm", "template", "ardea", pushed, "--version", chart["version"], "--plain-http", *options)
    rendered = re.sub(r"^(Pulled|Digest): .*\n", "", of_the_registry, flags=re.MULTILINE)
    assert rendered == run("helm", "template", "ardea", "./helm", *options)
    assert json.dumps(image) in rendered


def test_a_base_that_the_digest_does_not_name_is_not_built_on(registry, base):
    name, _, digest = base.partition("@sha256:")
    other = f"{name}@sha256:{digest[::-1]}"
    said = run("make", "-s", "image", f"IMAGE={registry}/team/other:1", f"BASE={other}", code=2)
    assert "manifest unknown" in said
