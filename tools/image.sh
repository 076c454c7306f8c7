#!/usr/bin/env bash
# Builds the static binary and the container image around it: target/image/penstock.tar (an OCI archive).
set -euo pipefail
cd "$(dirname "$0")/.."

target="$(uname -m)-unknown-linux-gnu"
out=target/image
image=penstock

# With --target, the flags reach the binary alone and not the build scripts and macros, which must stay dynamic.
RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --profile dist --target "$target" --package penstock
binary="target/$target/dist/penstock"

if ! ldd "$binary" 2>&1 | grep -qE "statically linked|not a dynamic executable"; then
    echo "$binary is not static:" >&2
    ldd "$binary" >&2
    exit 1
fi

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir "$context/data"
install -m 0755 "$binary" "$context/penstock"
tools/image-smoke.sh "$context/penstock"

version=$("$binary" --version | cut -d ' ' -f 2)
build=(buildah --storage-driver vfs bud --isolation chroot --quiet --file deploy/image/Containerfile)
id=$("${build[@]}" --tag "$image:$version" "$context")
mkdir -p "$out"
rm -f "$out/$image.tar"
buildah --storage-driver vfs push --quiet "$id" "oci-archive:$PWD/$out/$image.tar:$image:$version"
buildah --storage-driver vfs rmi --force "$id" >/dev/null

echo "$out/$image.tar: $image:$version, $(du -h "$out/$image.tar" | cut -f 1)"
