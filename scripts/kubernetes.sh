#!/bin/sh
# What only the thorough tests of the chart want: Debian's docker-registry (as root), and, built into .venv/bin in some
# minutes of CPU, once, what Debian does not have:
#   helm3                   the last Helm 3: the chart renders the same with it
#   prometheus-kubernetes   Debian leaves the discovery of pods out of its Prometheus
# make does not run it: without them their tests are skipped and say so.
set -eu
cd "$(dirname "$0")/.."

if ! command -v docker-registry >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Debian's docker-registry"
    apt-get update -qq
    # RUNLEVEL=1: the package's scripts start nothing.
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker-registry >/dev/null
fi

HELM=v3.22.0
PROMETHEUS=v0.315.0 # Prometheus 3.15.0, as Go counts

if ! command -v go >/dev/null; then
    echo "error: Helm 3 and Prometheus are built from source, and there is no Go" >&2
    echo "  hint: install Go; a Helm 3 and an upstream Prometheus will do, too, under the names above" >&2
    exit 1
fi
bin=$PWD/.venv/bin
export CGO_ENABLED=0 GOWORK=off

if [ ! -x "$bin/helm3" ]; then
    echo "building Helm $HELM at .venv/bin/helm3"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    GOBIN="$folder" go install -ldflags "-s -w" "helm.sh/helm/v3/cmd/helm@$HELM"
    mv "$folder/helm" "$bin/helm3"
fi
if [ ! -x "$bin/prometheus-kubernetes" ]; then
    echo "building Prometheus $PROMETHEUS at .venv/bin/prometheus-kubernetes"
    # Its go.mod replaces modules, which `go install` refuses: built where its source was unpacked.
    source=$(go mod download -json "github.com/prometheus/prometheus@$PROMETHEUS" | sed -n 's/^.*"Dir": "\(.*\)".*$/\1/p')
    (cd "$source" && go build -tags remove_all_sd,enable_kubernetes_sd -ldflags "-s -w" \
        -o "$bin/prometheus-kubernetes" ./cmd/prometheus)
fi
