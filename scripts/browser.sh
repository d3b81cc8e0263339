#!/bin/sh
# Makes sure that the tests find Chromium and its driver, which look at the console; as root, Debian's packages are installed.
set -eu

if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Debian's chromium and chromium-driver"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null
    exit 0
fi
echo "error: the tests need Chromium and chromedriver and did not find both, so they were not started" >&2
echo "  hint: Debian: sudo apt-get install chromium chromium-driver; macOS: brew install --cask chromium chromedriver" >&2
exit 1
