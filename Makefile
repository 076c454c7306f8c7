# Penstock. `make help` lists the targets. What a target needs is set up by tools/setup.sh first.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

export PATH := $(CURDIR)/.tools/bin:$(PATH)
setup := tools/setup.sh
step := tools/step

.PHONY: help run test check generate bench fuzz test-real conformance image chart tools clean-tools \
	check-format check-lints check-docs check-dependencies check-chart check-dashboards check-scripts

help: ## Lists the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

run: ## Starts both planes with the demo (ARGS="..." for more flags)
	@$(setup) protoc
	cargo run --release --locked -- up $(ARGS)

test: ## Runs all tests, against a real etcd and a real OpenTelemetry collector
	@$(setup) protoc etcd rotel
	@$(step) "tests" cargo test --workspace --locked --no-fail-fast

# That generated files are up to date, and that crates use only the crates below them, are tests.
check: check-format check-scripts check-dependencies check-chart check-dashboards check-lints check-docs ## Checks everything that needs no test to run

check-format:
	@$(step) "formatting" cargo fmt --all --check

check-lints:
	@$(setup) protoc
	@$(step) "lints" cargo clippy --workspace --all-targets --locked -- -D warnings

check-docs:
	@$(setup) protoc
	@RUSTDOCFLAGS="-D warnings" $(step) "API documentation" cargo doc --workspace --no-deps --locked

check-dependencies:
	@$(setup) cargo-deny
	@$(step) "dependencies" cargo deny --locked check --hide-inclusion-graph licenses bans sources

check-chart:
	@$(setup) helm kubernetes-validate
	@$(step) "chart" tools/chart.sh

check-dashboards:
	@$(setup) python promtool
	@$(step) "dashboard and alerts" tools/dashboards.sh

check-scripts:
	@$(setup) python shellcheck hadolint
	@$(step) "scripts" tools/scripts.sh

generate: ## Writes the generated files anew: reference pages, the policy's JSON Schema
	@$(setup) protoc
	cargo run --quiet --locked --package penstock-model --example generate
	cargo run --quiet --locked --package penstock --example generate

bench: ## Measures Penstock beside nginx, haproxy and Envoy; takes some minutes of both cores
	@$(setup) protoc nginx haproxy envoy
	@tests/bench/run.sh

fuzz: ## Feeds the readers of bodies and streams with garbage for a minute each (TARGETS="sse" for some of them)
	@$(setup) cxx cargo-fuzz
	@tools/fuzz.sh $(TARGETS)

test-real: ## Routes to a real language model on this machine; installs it into a folder of its own
	@$(setup) protoc
	@tests/real/run.sh

conformance: ## Runs the vendors' official clients through Penstock and writes docs/reference/compatibility.md
	@$(setup) protoc
	@tests/conformance/run.sh

image: ## Builds the container image from a static binary into target/image/
	@$(setup) protoc buildah curl
	@tools/image.sh

chart: check-chart ## Lints, renders and validates the Helm chart

tools: ## Sets up everything that building, testing and checking need
	@$(setup) protoc etcd rotel cargo-deny helm kubernetes-validate promtool shellcheck hadolint

clean-tools: ## Removes what was set up in .tools/
	rm -rf .tools
