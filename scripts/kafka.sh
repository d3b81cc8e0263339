#!/bin/sh
# A Kafka broker on this machine, for tests and trials: scripts/kafka.sh up|kill|down [PORT]
#
#   up     starts it, and prints the variables that the tests read; what it kept is still there
#   kill   ends it as a crash does
#   down   ends it and removes what it kept
#
# PORT (29092) takes clients without a password, PORT + 2 those with one (user ardea, password heron), over TLS.  Needs Java 17 and,
# the first time, Maven, which fetches the jars into KAFKA_CACHE.  What it keeps is in KAFKA_DATA.
set -eu

verb=${1:-} port=${2:-29092}
cache=${KAFKA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ardea-kafka}
data=${KAFKA_DATA:-${TMPDIR:-/tmp}/kafka-$port}
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
version=3.9.1
keys=ardea-tests

fetch() {
    command -v mvn >/dev/null || {
        echo "error: the broker's jars are fetched with Maven, and there is no mvn on the PATH" >&2
        echo "  hint: Debian, Ubuntu: sudo apt-get install maven; macOS: brew install maven" >&2
        exit 1
    }
    mkdir -p "$cache"
    cat >"$cache/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>ardea</groupId><artifactId>broker</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
POM
    mvn -q -B -f "$cache/pom.xml" dependency:copy-dependencies -DoutputDirectory="$cache/lib.new" >&2
    mv "$cache/lib.new" "$cache/lib"
}

# A certificate that signs itself: clients take it as their authority.
certify() {
    store="-alias broker -keystore $data/broker.p12 -storetype PKCS12 -storepass $keys"
    rm -f "$data/broker.p12"
    keytool -genkeypair $store -keyalg EC -groupname secp256r1 -dname CN=127.0.0.1 -ext san=ip:127.0.0.1 -validity 3650 &&
        keytool -exportcert -rfc $store >"$data/ca.pem.new" &&
        mv "$data/ca.pem.new" "$data/ca.pem"
}

settings() {
    cat <<SETTINGS
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1)),SASL_SSL://127.0.0.1:$((port + 2))
advertised.listeners=PLAINTEXT://127.0.0.1:$port,SASL_SSL://127.0.0.1:$((port + 2))
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
controller.listener.names=CONTROLLER
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_ardea="heron";
ssl.keystore.location=$data/broker.p12
ssl.keystore.type=PKCS12
ssl.keystore.password=$keys
log.dirs=$data/log
log.cleaner.backoff.ms=200
log.initial.task.delay.ms=500
log.retention.check.interval.ms=500
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
SETTINGS
}

# Whether the process of $data/pid is the broker that keeps its things there.
running() {
    pid=$(cat "$data/pid" 2>/dev/null) || return 1
    case $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" || ps -ww -o args= -p "$pid" 2>/dev/null) in
    *kafka.Kafka\ "$data/server.properties"*) ;;
    *) return 1 ;;
    esac
}

variables() {
    echo "export KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:$port"
    echo "export ARDEA_KAFKA_SASL_BOOTSTRAP_SERVERS=127.0.0.1:$((port + 2))"
    echo "export ARDEA_KAFKA_CA=$data/ca.pem"
    again="KAFKA_CACHE=$cache KAFKA_DATA=$data $self"
    echo "export ARDEA_KAFKA_STOP='$again kill $port' ARDEA_KAFKA_START='$again up $port'"
}

up() {
    if running; then
        variables
        return
    fi
    command -v java >/dev/null || {
        echo "error: the broker needs Java, and there is no java on the PATH" >&2
        echo "  hint: Debian, Ubuntu: sudo apt-get install default-jre-headless; macOS: brew install openjdk@17" >&2
        exit 1
    }
    [ -d "$cache/lib" ] || fetch
    mkdir -p "$data"
    [ -f "$data/ca.pem" ] || certify 2>"$data/keytool.log" || { cat "$data/keytool.log" >&2 && exit 1; }
    settings >"$data/server.properties"
    flags="-Xmx400m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    [ -f "$data/log/meta.properties" ] ||
        java $flags -cp "$cache/lib/*" kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk \
            -c "$data/server.properties" >"$data/format.log" 2>&1 || { cat "$data/format.log" >&2 && exit 1; }
    : >"$data/kafka.log" # before the broker is there: what an earlier one has said is not said of this one
    # In a session of its own, where there is setsid: Ctrl-C in the terminal of the tests is not meant for it.
    $(command -v setsid || true) java $flags -cp "$cache/lib/*" kafka.Kafka "$data/server.properties" \
        >"$data/kafka.log" 2>&1 </dev/null &
    echo $! >"$data/pid"
    for _ in $(seq 120); do
        if grep -q 'Kafka Server started' "$data/kafka.log"; then
            variables
            return
        fi
        kill -0 "$(cat "$data/pid")" 2>/dev/null || break
        sleep 0.5
    done
    echo "error: the broker did not start; the end of $data/kafka.log:" >&2
    tail -5 "$data/kafka.log" >&2
    end
    exit 1
}

end() {
    for _ in $(seq 200); do
        running || return 0
        kill -9 "$pid" 2>/dev/null || true
        sleep 0.05
    done
    echo "error: the broker, process $pid, does not end; what it keeps in $data is left there" >&2
    exit 1
}

case $verb in
up) up ;;
kill) end ;;
down) end && rm -rf "$data" ;;
*)
    echo "usage: $0 up|kill|down [PORT]" >&2
    exit 2
    ;;
esac
