#!/usr/bin/env bash
# Builds Penstock as it is shipped, and the load generator, and measures: `make bench`. Arguments go to bench.py.
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --locked --profile dist --package penstock
cargo build --locked --profile release --package penstock-tests --bin loadgen
exec .tools/venv/bin/python tests/bench/bench.py \
    --penstock target/dist/penstock --loadgen target/release/loadgen "$@"
