#!/bin/sh
# Puts Prometheus and promtool, with which the tests scrape and try alerts, into .venv/bin, unless the machine has them.
# Debian's package is unpacked, not installed: that needs no root and starts no service.
set -eu
cd "$(dirname "$0")/.."

has() {
    [ -x ".venv/bin/$1" ] || command -v "$1" >/dev/null
}

if has prometheus && has promtool; then
    exit 0
fi

unpack_from_debian() {
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    if [ "$(id -u)" = 0 ]; then
        apt-get update -qq
    fi
    (cd "$folder" && apt-get download -qq -o APT::Sandbox::User=root prometheus && dpkg -x prometheus_*.deb .) &&
        cp "$folder/usr/bin/prometheus" "$folder/usr/bin/promtool" .venv/bin/
}

if command -v apt-get >/dev/null; then
    echo "unpacking Debian's prometheus into .venv"
    unpack_from_debian && exit 0
fi
echo "error: the tests need Prometheus and found none, so they were not started" >&2
echo "  hint: Debian, Ubuntu: sudo apt-get install prometheus; macOS: brew install prometheus" >&2
exit 1
