#!/bin/sh
# Prints the class path of a ZooKeeper that serves metrics to Prometheus, as the Apache project's image does, for tests.
# Debian's package leaves the provider out.  Maven fetches the jars into ZOOKEEPER_CACHE, the first time.
set -eu

version=3.9.4
cache=${ZOOKEEPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ardea-zookeeper}/$version

if [ ! -d "$cache/lib" ]; then
    command -v mvn >/dev/null || {
        echo "error: ZooKeeper's jars are fetched with Maven, and there is no mvn on the PATH" >&2
        echo "  hint: Debian, Ubuntu: sudo apt-get install maven; macOS: brew install maven" >&2
        exit 1
    }
    mkdir -p "$cache"
    cat >"$cache/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>ardea</groupId><artifactId>zookeeper</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper-prometheus-metrics</artifactId><version>$version</version></dependency>
<dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>$version</version></dependency>
<dependency><groupId>org.eclipse.jetty</groupId><artifactId>jetty-servlet</artifactId><version>9.4.53.v20231009</version></dependency>
<dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version></dependency>
<dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version></dependency>
</dependencies></project>
POM
    rm -rf "$cache/lib.new"
    mvn -q -B -f "$cache/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$cache/lib.new" >&2
    mv "$cache/lib.new" "$cache/lib"
fi
echo "$cache/lib/*"
