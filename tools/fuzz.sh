#!/usr/bin/env bash
# Feeds the fuzz targets with garbage, each for FUZZ_SECONDS (60), or those that are named. Called by `make fuzz`.
#
# What was found before is kept in target/fuzz/corpus; the fixtures are seeds. Rust code is memory-safe here, so that no
# sanitizer is needed, and hence no nightly compiler: panics, broken promises, endless loops and memory are looked for.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cargo fuzz list --fuzz-dir fuzz)
options=(--fuzz-dir fuzz --target-dir target/fuzz --sanitizer none)
cargo fuzz build "${options[@]}"
for target in "${targets[@]}"; do
    mkdir -p "target/fuzz/corpus/$target"
    tools/step "fuzzing $target" cargo fuzz run "${options[@]}" "$target" \
        "target/fuzz/corpus/$target" data-plane/providers/fixtures -- \
        -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=1024 -max_len=65536 -verbosity=0 -print_final_stats=1
done
