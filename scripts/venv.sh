#!/bin/sh
# Builds .venv with Ardea (editable) and the development tools in it.  Run by make whenever pyproject.toml changes.
set -eu
cd "$(dirname "$0")/.."

# Prints the first interpreter that is new enough and can build virtual environments (Debian splits that off).
find_python() {
    for candidate in python3.13 python3.12 python3.11 python3 /usr/bin/python3; do
        if "$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    if ! python=$(find_python) && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing Debian's python3-venv"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
        python=$(find_python) || true
    fi
    if [ -z "$python" ]; then
        echo "error: found no Python >= 3.11 that can build a virtual environment, so nothing was set up" >&2
        echo "  hint: Debian, Ubuntu: sudo apt-get install python3-venv; macOS: brew install python@3.13" >&2
        exit 1
    fi
    echo "building .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi

echo "installing Ardea and its development tools into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
