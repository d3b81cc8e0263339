#!/bin/sh
# Installs Redis and Memcached, of which the tests start servers of their own; Debian's services stay off.
set -eu

if command -v redis-server >/dev/null && command -v memcached >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Debian's redis-server and memcached"
    apt-get update -qq
    # RUNLEVEL=1: the packages' scripts start nothing.
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends redis-server memcached >/dev/null
    exit 0
fi
echo "error: the tests need redis-server and memcached and did not find both, so they were not started" >&2
echo "  hint: Debian, Ubuntu: sudo apt-get install redis-server memcached; macOS: brew install redis memcached" >&2
exit 1
