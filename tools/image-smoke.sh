#!/usr/bin/env bash
# image-smoke.sh BINARY: runs the binary as a container would, as nobody in a root with nothing but what every container
# runtime brings, and sends it a request. Without root the binary runs where it is.
set -euo pipefail

binary=$(realpath "$1")
root=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
log="$root/log"
pid=

stop() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$root"
}
trap stop EXIT

run=("$binary")
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$root/etc" "$root/dev" "$root/var/lib/penstock"
    mknod -m 666 "$root/dev/null" c 1 3
    mknod -m 666 "$root/dev/random" c 1 8
    mknod -m 666 "$root/dev/urandom" c 1 9
    cp "$binary" "$root/penstock"
    cp /etc/hosts "$root/etc/hosts"
    chmod 755 "$root"
    chown 65532:65532 "$root/var/lib/penstock"
    run=(chroot --userspec=65532:65532 "$root" /penstock)
    data=/var/lib/penstock
else
    data="$root/data"
fi

"${run[@]}" --version
"${run[@]}" up --data-dir "$data" --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$((port + 1))" \
    --grpc-listen "127.0.0.1:$((port + 2))" --http-listen "127.0.0.1:$((port + 3))" >"$log" 2>&1 &
pid=$!

for _ in $(seq 100); do
    if answer=$(curl -sf --noproxy '*' "http://127.0.0.1:$((port + 1))/ready" 2>/dev/null); then
        break
    fi
    kill -0 "$pid" 2>/dev/null || { cat "$log" >&2 && exit 1; }
    sleep 0.1
done

answer=$(curl -sf --noproxy '*' "http://127.0.0.1:$port/api/invoke" -d '{"prompt": "hello"}') || { cat "$log" >&2 && exit 1; }
echo "answer: ${answer:0:100}"

# By name, so that the resolver of a static binary is seen to work.
"${run[@]}" node list --server "http://localhost:$((port + 2))"
