#!/usr/bin/env bash
# `make conformance`: the official clients against every dialect, straight and through Penstock. What they need goes into
# .tools/conformance; what they found is written to docs/reference/compatibility.md. More arguments go to run.py, for
# example `--provider gemini --client openai_chat.py --feature tools`; the page is written only by a full run.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools/setup.sh conformance
cargo build --locked --package penstock --package penstock-sim --bins --examples
target=${CARGO_TARGET_DIR:-target}/debug
write=()
if [ $# = 0 ]; then
    write=(--write docs/reference/compatibility.md)
fi
exec .tools/conformance/venv/bin/python tests/conformance/run.py --services "$target/examples/services" \
    --penstock "$target/penstock" "${write[@]}" "$@"
