#!/bin/sh
# Builds the image: image.sh NAME [OPTION]...  With buildah where it is, else with docker.
# CONTEXT=FOLDER builds what that folder's Dockerfile says.
set -eu
cd "$(dirname "$0")/.."
name=$1
shift

if command -v buildah >/dev/null; then
    case $name in
    */*) full=$name ;;
    *) full=docker.io/library/$name ;; # as docker has it, and Kubernetes asks for it
    esac
    exec buildah build --quiet --layers --network=host --tag "$full" "$@" "${CONTEXT:-.}"
elif command -v docker >/dev/null; then
    exec docker build --quiet --network=host --tag "$name" "$@" "${CONTEXT:-.}"
fi
echo "error: found neither buildah nor docker, so no image was built" >&2
echo "  hint: Debian, Ubuntu: sudo apt-get install buildah" >&2
exit 1
