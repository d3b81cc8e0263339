#!/bin/sh
# Generates ardea/protocol/*_pb2.py and .pyi.  With --check: fails if what is there differs, and changes nothing.
set -eu
cd "$(dirname "$0")/.."

generate() {
    .venv/bin/python -m grpc_tools.protoc -I . --python_out="$1" --pyi_out="$1" ardea/protocol/*.proto
}

if [ "${1-}" != --check ]; then
    generate .
    exit 0
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
generate "$folder"
for fresh in "$folder"/ardea/protocol/*; do
    if ! cmp -s "$fresh" "ardea/protocol/${fresh##*/}"; then
        echo "error: ardea/protocol/${fresh##*/} does not match its .proto file" >&2
        echo "  hint: run 'make proto' and commit the result" >&2
        exit 1
    fi
done
