#!/bin/sh
# Packages the chart into build/: chart.sh [HOST/PATH], which pushes it to HOST/PATH/charts, beside an image of its name.
set -eu
cd "$(dirname "$0")/.."

if ! command -v helm >/dev/null; then
    echo "error: found no helm, so the chart was not packaged" >&2
    echo "  hint: https://helm.sh/docs/intro/install" >&2
    exit 1
fi
helm package --destination build helm
[ -n "${1-}" ] || exit 0
version=$(sed -n 's/^version: //p' helm/Chart.yaml)
case $1 in
localhost:* | 127.*) plain=--plain-http ;; # registries of this machine need no TLS
*) plain= ;;
esac
helm push "build/ardea-$version.tgz" "oci://$1/charts" $plain
