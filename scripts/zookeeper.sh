#!/bin/sh
# Installs ZooKeeper, of which the tests start servers of their own.  Debian's package starts no service.
set -eu

installed() {
    command -v java >/dev/null && java -version 2>/dev/null &&
        ls /usr/share/java/zookeeper.jar /opt/homebrew/opt/zookeeper/libexec/lib/zookeeper-*.jar \
            /usr/local/opt/zookeeper/libexec/lib/zookeeper-*.jar 2>/dev/null | grep -q .
}

if installed; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Debian's zookeeper"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends zookeeper >/dev/null
    installed && exit 0
fi
echo "error: the tests need ZooKeeper and Java and found none, so they were not started" >&2
echo "  hint: Debian, Ubuntu: sudo apt-get install zookeeper; macOS: brew install zookeeper openjdk" >&2
exit 1
