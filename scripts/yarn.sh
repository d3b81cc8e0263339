#!/bin/sh
# Hadoop's YARN on this machine, a ResourceManager and a NodeManager, for tests and trials: scripts/yarn.sh up|down [PORT]
#
#   up     starts it, and prints the variable that Spark reads; what it kept is removed
#   down   ends it, with the containers that run, and removes what it kept
#
# It takes PORT (28030) to PORT + 8, on loopback; PORT + 4 has its pages.  Needs Java 17, a Python with pyspark (PYTHON), whose
# jars it runs with, and, the first time, Maven, which fetches the others into YARN_CACHE.  What it keeps is in YARN_DATA.
set -eu

verb=${1:-} port=${2:-28030}
here=$(cd "$(dirname "$0")/.." && pwd)
cache=${YARN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ardea-yarn}
data=${YARN_DATA:-${TMPDIR:-/tmp}/yarn-$port}
yarn=org.apache.hadoop.yarn.server

fetch() {
    command -v mvn >/dev/null || {
        echo "error: YARN's jars are fetched with Maven, and there is no mvn on the PATH" >&2
        echo "  hint: Debian, Ubuntu: sudo apt-get install maven; macOS: brew install maven" >&2
        exit 1
    }
    mkdir -p "$1"
    cat >"$1/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>ardea</groupId><artifactId>yarn</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-minicluster</artifactId><version>$version</version>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
<dependency><groupId>org.bouncycastle</groupId><artifactId>bcpkix-jdk18on</artifactId><version>1.78.1</version></dependency>
</dependencies></project>
POM
    mvn -q -B -f "$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$1/lib.new" >&2
    mv "$1/lib.new" "$1/lib"
}

site() {
    echo '<configuration>'
    while read -r name value; do
        echo "<property><name>$name</name><value>$value</value></property>"
    done
    echo '</configuration>'
}

settings() {
    site <<CORE >"$data/conf/core-site.xml"
fs.defaultFS file:///
hadoop.tmp.dir $data
CORE
    site <<YARN >"$data/conf/yarn-site.xml"
yarn.resourcemanager.address 127.0.0.1:$port
yarn.resourcemanager.scheduler.address 127.0.0.1:$((port + 1))
yarn.resourcemanager.resource-tracker.address 127.0.0.1:$((port + 2))
yarn.resourcemanager.admin.address 127.0.0.1:$((port + 3))
yarn.resourcemanager.webapp.address 127.0.0.1:$((port + 4))
yarn.resourcemanager.scheduler.class $yarn.resourcemanager.scheduler.fifo.FifoScheduler
yarn.scheduler.minimum-allocation-mb 128
yarn.node-attribute.fs-store.root-dir file://$data/attributes
yarn.nodemanager.address 127.0.0.1:$((port + 5))
yarn.nodemanager.localizer.address 127.0.0.1:$((port + 6))
yarn.nodemanager.webapp.address 127.0.0.1:$((port + 7))
yarn.nodemanager.collector-service.address 127.0.0.1:$((port + 8))
yarn.nodemanager.local-dirs $data/local
yarn.nodemanager.log-dirs $data/logs
yarn.nodemanager.resource.memory-mb 4096
yarn.nodemanager.resource.cpu-vcores 4
yarn.nodemanager.disk-health-checker.enable false
YARN
}

# In a session of its own, where there is setsid: Ctrl-C in the terminal of the tests is not meant for it.
start() {
    flags="-Xmx300m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir=$data"
    $(command -v setsid || true) "$JAVA_HOME/bin/java" $flags -cp "$data/conf:$lib/*:$jars/*" "$yarn.$2" \
        >"$data/$1.log" 2>&1 </dev/null &
    echo $! >"$data/$1.pid"
}

up() {
    jars=$("${PYTHON:-$here/.venv/bin/python}" -c 'import pyspark; print(pyspark.__path__[0] + "/jars")')
    version=$(basename "$jars"/hadoop-client-api-*.jar .jar | sed 's/.*-//')
    lib=$cache/$version/lib
    [ -d "$lib" ] || fetch "$cache/$version"
    # Containers start $JAVA_HOME/bin/java.
    JAVA_HOME=${JAVA_HOME:-$(java -XshowSettings:properties -version 2>&1 | sed -n 's/ *java.home = //p')}
    export JAVA_HOME HADOOP_HOME="$data"
    mkdir -p "$data/conf"
    settings
    start resourcemanager resourcemanager.ResourceManager
    start nodemanager nodemanager.NodeManager
    for _ in $(seq 120); do
        if curl -sf "http://127.0.0.1:$((port + 4))/ws/v1/cluster/nodes" | grep -q '"state":"RUNNING"'; then
            echo "export HADOOP_CONF_DIR=$data/conf"
            return
        fi
        kill -0 "$(cat "$data/resourcemanager.pid")" "$(cat "$data/nodemanager.pid")" 2>/dev/null || break
        sleep 0.5
    done
    echo "error: YARN did not start; the ends of $data/resourcemanager.log and nodemanager.log:" >&2
    tail -n 5 "$data/resourcemanager.log" >&2
    tail -n 5 "$data/nodemanager.log" >&2
    end
    exit 1
}

# The NodeManager has time to end its containers.
end() {
    for each in nodemanager resourcemanager; do
        [ -f "$data/$each.pid" ] || continue
        pid=$(cat "$data/$each.pid")
        kill "$pid" 2>/dev/null || continue
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -9 "$pid" 2>/dev/null || true
    done
}

case $verb in
up) end && rm -rf "$data" && up ;;
down) end && rm -rf "$data" ;;
*)
    echo "usage: $0 up|down [PORT]" >&2
    exit 2
    ;;
esac
