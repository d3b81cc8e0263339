#!/bin/sh
# Makes sure that the tests find Java 17 or newer, which Spark runs on; as root, Debian's package is installed.
set -eu

has_java() {
    version=$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p') || return 1
    [ "${version:-0}" -ge 17 ]
}

if has_java; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Debian's default-jre-headless"
    mkdir -p /usr/share/man/man1  # slim images lack it, and the package's alternatives need it
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null
    has_java && exit 0
fi
echo "error: the tests need Java 17 or newer, for Spark, and found none, so they were not started" >&2
echo "  hint: Debian, Ubuntu: sudo apt-get install default-jre-headless; macOS: brew install openjdk@17" >&2
exit 1
