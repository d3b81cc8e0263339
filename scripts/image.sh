#!/bin/sh
# Builds the image: image.sh NAME [OPTION]...  With buildah where it is, else with docker.
# BASE is said by an option, too: buildah takes the layer of a label for the same whatever an argument in it says.
# CONTEXT=FOLDER builds what that folder's Dockerfile says; PUSH=yes pushes NAME to the registry that it begins with.
set -eu
cd "$(dirname "$0")/.."
name=$1
shift
[ -z "${BASE-}" ] || set -- --build-arg "BASE=$BASE" --label "org.opencontainers.image.base.name=$BASE" "$@"

# Registries of this machine need no TLS; docker knows that by itself.
plain_if_local() {
    case $1 in
    localhost:* | 127.*) echo --tls-verify=false ;;
    esac
}

if command -v buildah >/dev/null; then
    case $name in
    */*) full=$name ;;
    *) full=docker.io/library/$name ;; # as docker has it, and Kubernetes asks for it
    esac
    buildah build --quiet --layers --network=host $(plain_if_local "${BASE-}") --tag "$full" "$@" "${CONTEXT:-.}"
    [ -z "${PUSH-}" ] || exec buildah push --quiet $(plain_if_local "$full") "$full"
elif command -v docker >/dev/null; then
    docker build --quiet --network=host --tag "$name" "$@" "${CONTEXT:-.}"
    [ -z "${PUSH-}" ] || exec docker push --quiet "$name"
else
    echo "error: found neither buildah nor docker, so no image was built" >&2
    echo "  hint: Debian, Ubuntu: sudo apt-get install buildah" >&2
    exit 1
fi
