#!/bin/sh
# A release of Debian with its Python, in a folder, once: debian.sh RELEASE FOLDER.  Needs root.
# What a later release has is not what this machine has: commands run in it by chroot.
set -eu
release=$1 folder=$2
[ ! -e "$folder/.complete" ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "error: only root can make a Debian in a folder" >&2
    exit 1
fi
if ! command -v debootstrap >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap >/dev/null
fi
rm -rf "$folder"
mkdir -p "$folder"
script=/usr/share/debootstrap/scripts/$release
[ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid # one that this machine's debootstrap does not know yet
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$release" "$folder" \
    http://deb.debian.org/debian "$script" >"$folder.log" 2>&1 || {
    tail -n 30 "$folder.log" >&2
    exit 1
}
rm -rf "$folder.log" "$folder"/var/cache/apt/archives/*.deb "$folder"/var/lib/apt/lists/* "$folder"/usr/share/doc
ln -sf /usr/bin/python3 "$folder/usr/local/bin/python"
cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/" # this machine may know more than Debian's own
touch "$folder/.complete"
