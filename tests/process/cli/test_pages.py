"""The guides, block by block, from an empty folder; those of Kafka and Spark are followed beside their tests."""

from __future__ import annotations

import shutil

import pytest

from tests.process.pages import Reader, blocks
from tests.process.ports import free_ports

pytestmark = pytest.mark.cluster


def test_the_readme(tmp_path):
    reader = Reader(tmp_path)
    reader.follow("README.md")
    assert [line.split()[:3] for line in reader.typed] == [["ardea", "run", "word_count.py"]]


@pytest.mark.thorough
def test_the_guide(tmp_path, daemons):
    reader = Reader(tmp_path)
    reader.follow("docs/guide.md")
    assert {"ardea run shop.py", "ardea submit local shop.py", "pytest"} <= set(reader.typed)


@pytest.mark.thorough
def test_how_to_test(tmp_path):
    """With the README's topology, as the page says."""
    reader = Reader(tmp_path)
    reader.follow("README.md")
    reader.follow("docs/testing.md")
    assert len([line for line in reader.typed if line.startswith("pytest")]) == 3


@pytest.mark.thorough
def test_trident(tmp_path):
    reader = Reader(tmp_path, {"/tmp/words": str(tmp_path / "words")})
    reader.follow("docs/trident.md")
    assert "python show.py" in reader.typed


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_drpc(tmp_path, daemons):
    [port] = free_ports(1)
    reader = Reader(tmp_path, {"8800": str(port)})
    reader.follow("docs/drpc.md")
    assert reader.typed[-2:] == ["ardea kill Asked", "pytest -q -p no:cacheprovider block_4.py"]


@pytest.mark.thorough
def test_columns(tmp_path):
    reader = Reader(tmp_path)
    reader.follow("docs/columns.md")
    assert reader.typed == ["ardea run large_orders.py --logs report"]


def test_blocks_are_found_with_their_names():
    named = {block.file: block.kind for block in blocks("docs/guide.md") if block.file}
    assert named == {"shop.py": "python", "test_shop.py": "python"}
