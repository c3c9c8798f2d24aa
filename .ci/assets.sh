#!/usr/bin/env bash
# Fetches what the web page takes over from npm, in the versions that VERSIONS names; npm checks the digests.
set -euo pipefail
cd "$(dirname "$0")/../geodp/maps/assets/vendor"
here=$PWD
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT

declare -A wanted=(
    [leaflet]="LICENSE dist/leaflet.js dist/leaflet.css"
    [flatbush]="LICENSE flatbush.js" # with flatqueue inside
    [flatqueue]="LICENSE"
    [world-atlas]="LICENSE land-50m.json land-110m.json"
)
while read -r name version; do
    archive=$(cd "$fetched" && npm pack --silent "$name@$version")
    tar -xzf "$fetched/$archive" -C "$fetched"
    mkdir -p "$here/$name"
    for file in ${wanted[$name]}; do
        install -m 644 "$fetched/package/$file" "$here/$name/"
    done
    rm -r "$fetched/package"
done <VERSIONS
