#!/usr/bin/env bash
# Checks the scripts and the image's recipe. Called by `make check`.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t scripts < <(git ls-files --cached --others --exclude-standard | while read -r file; do
    [ -f "$file" ] && head -c 64 "$file" | head -n 1 | grep -qE '^#!.*\b(ba)?sh$' && echo "$file"
done)
for script in "${scripts[@]}"; do
    bash -n "$script"
done
shellcheck --shell=bash "${scripts[@]}"

mapfile -t python < <(git ls-files --cached --others --exclude-standard '*.py')
for file in "${python[@]}"; do
    .tools/venv/bin/python -c 'import ast, sys; ast.parse(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1])' "$file"
done

hadolint deploy/image/Containerfile
echo "${#scripts[@]} shell scripts, ${#python[@]} Python files, 1 Containerfile"
