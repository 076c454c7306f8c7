#!/usr/bin/env bash
# Checks the Grafana dashboard and the alert rules, and runs the rules' own tests. Called by `make check`. That every
# metric in them exists is a test of the workspace (tests/tests/shipped.rs).
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p target/check
.tools/venv/bin/python tools/dashboards.py deploy/grafana/penstock.json target/check/dashboard-rules.json
promtool check rules target/check/dashboard-rules.json
promtool check rules deploy/prometheus/alerts.yml
promtool test rules deploy/prometheus/alerts_test.yml
