#!/bin/sh
# Installs Redis, Memcached and PostgreSQL, of which the tests start servers of their own; Debian's services stay off.
set -eu

has_postgres() {
    command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

if command -v redis-server >/dev/null && command -v memcached >/dev/null && has_postgres; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Debian's redis-server, memcached and postgresql"
    apt-get update -qq
    # RUNLEVEL=1: the packages' scripts start nothing; nor do they make a database.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold \
        redis-server memcached postgresql >/dev/null
    exit 0
fi
echo "error: the tests need redis-server, memcached and PostgreSQL and did not find all, so they were not started" >&2
echo "  hint: Debian, Ubuntu: sudo apt-get install redis-server memcached postgresql" >&2
echo "  hint: macOS: brew install redis memcached postgresql@17, whose bin belongs on the PATH" >&2
exit 1
