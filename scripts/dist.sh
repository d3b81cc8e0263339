#!/bin/sh
# Builds wheel and sdist into a folder, and checks them: dist.sh FOLDER
set -eu
cd "$(dirname "$0")/.."
rm -rf "$1"
.venv/bin/python -m build --no-isolation --outdir "$1" >/dev/null
.venv/bin/twine check --strict "$1"/*
