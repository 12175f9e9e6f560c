# `make help` lists the targets; each line comes from the ## comment beside its target.
.DEFAULT_GOAL := help
.PHONY: help run size test e2e upgrade postgres-versions bare systemd cluster soak model fuzz mutants coverage bench lint check deb static image demo-image manifests sbom packages release clean-dev
export VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
dist := $(or $(CARGO_TARGET_DIR),target)/dist
export ARCH := $(if $(filter aarch64,$(shell uname -m)),arm64,amd64)
machine := $(if $(filter arm64,$(ARCH)),aarch64,x86_64)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build, and start everything for trying out (ports of your own: LISTEN=9000 DEMO_LISTEN=9001)
	@tests/need rust compiler postgres $(addprefix free:,$(LISTEN) $(DEMO_LISTEN))
	@[ -e $${CARGO_TARGET_DIR:-target}/debug/gatepost ] || echo "The first build takes some four minutes on two cores; later ones seconds."
	@cargo build --bins
	@cargo run --bin gatepost-dev -- $(addprefix --listen ,$(LISTEN)) $(addprefix --demo-listen ,$(DEMO_LISTEN))

# Three times as many at once as two cores have: most tests wait for a server.
test: ## Run all Rust tests, against a throw-away Postgres (some: TEST="--test service login::")
	@tests/need rust compiler postgres pgbouncer openssl shells sqlite curl python jq aiosmtpd
	@RUST_TEST_THREADS=$${RUST_TEST_THREADS:-6} RECORD=$(RECORD) tests/with-postgres cargo test --no-fail-fast $(TEST)

e2e: ## Drive the demo application with a real Chromium, and the provider with other people's clients
	@tests/need rust compiler postgres chromium node python openssl nginx haproxy caddy systemd curl certutil oathtool zbarimg go java apache php ruby postfix
	@# As `make test` builds: without what tests ask of them, our crates are others, and each is compiled once more.
	@cargo build --bins --tests
	@cd tests/e2e && npm ci --silent --no-audit --no-fund && npm test --silent

upgrade: ## Upgrade from the commit of tests/upgrade/FROM while everything is in use, and ask whether all of it goes on
	@tests/need rust compiler postgres
	@tests/upgrade/run

postgres-versions: ## Run service tests over Postgres 14, 16, 17 and 18, by their programs in the registries (some: TEST="rows_read costs")
	@tests/need rust compiler postgres pgbouncer openssl shells sqlite curl python jq aiosmtpd node
	@tests/postgres-versions $(TEST)

manifests: ## Have the files of deploy/ read by Helm, promtool, and OpenTofu or Terraform
	@tests/need go python
	@tests/manifests

bare: ## Build the server without what administrators and their programs use, and ask it what it then refuses
	@tests/need rust compiler postgres
	@tests/bare/run

systemd: ## Start the shipped units under a real systemd, in namespaces of its own (as root, on Linux that allows them)
	@tests/need rust compiler postgres systemd curl dpkg
	@cargo build
	@tests/under-systemd

cluster: ## Break one thing after the other under load, over Patroni, and ask for all that was acknowledged (some: CLUSTER="frozen")
	@tests/need rust compiler postgres etcd haproxy patroni
	@cargo build
	@tests/cluster/run $(CLUSTER)

soak: ## Hours of load while one thing after the other happens, and what it does to memory, files and rows (HOURS=8)
	@tests/need rust compiler postgres
	@cargo build
	@tests/soak/run --hours $(or $(HOURS),8) $(SOAK)

model: ## Check the model of codes, refresh tokens and endings by spin, and that it fails where a step is taken out
	@tests/need spin compiler
	@tests/model/check $(MODEL)

fuzz: ## Run each fuzz target for so long, by coverage (SECONDS=60; some: FUZZ="redirect_uri jws"; RUNS=10000000; JOBS=2)
	@tests/need rust compiler g++ python
	@RUNS=$(RUNS) JOBS=$(JOBS) tests/fuzz/run $(or $(SECONDS),$(if $(RUNS),14400,60)) $(FUZZ)

mutants: ## Change one thing after the other in files of the core: a unit test must fail (FILE="src/protocol/token/refresh_token.rs")
	@tests/need rust compiler python cargo-mutants
	@tests/mutants/run $(FILE)

coverage: ## How many lines of each core room the tests reach, and that it is not less than before (some tests: COVERAGE="--lib")
	@tests/need rust compiler postgres pgbouncer openssl shells sqlite curl python jq aiosmtpd llvm
	@tests/coverage/run $(COVERAGE)

bench: ## Load a release build and print the table of docs/operate/speed.md (options: BENCH="--seconds 10")
	@tests/need rust compiler postgres openssl
	@GATEPOST_BENCH_FSYNC=on tests/with-postgres cargo bench --bench load -- $(BENCH)

size: ## Print how much there is to read: tokens of each program, and lines of the tests
	@tests/need python
	@tests/size

lint: ## Check formatting, clippy, the fuzz targets and the documentation; warnings are errors
	@tests/need rust compiler
	cargo fmt --all --check
	cargo clippy --all-targets -- -D warnings
	@# The fuzz targets are only checked, so libFuzzer need not be built: this library is never linked.
	CUSTOM_LIBFUZZER_PATH=/usr/lib/libFuzzer.a CARGO_TARGET_DIR="$${CARGO_TARGET_DIR:-$$PWD/target}" \
	    cargo check --quiet --locked --manifest-path tests/fuzz/Cargo.toml --bins
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --document-private-items

# All three run even when one fails, the Rust tests last, so that their summaries stand at the end.
check: ## Everything that must pass before a change goes in: lint, e2e, test
	@failed=; for target in lint e2e test; do \
	    printf '\n==> make %s (%s)\n' "$$target" "$$(date +%T)"; \
	    $(MAKE) --no-print-directory $$target || failed="$$failed $$target"; done; \
	[ -z "$$failed" ] || { echo "Failed:$$failed" >&2; exit 1; }

# Every package bears the moment of the last commit, so that the same commit gives the same bytes; without git, Cargo.toml's.
# For packages alone: aws-lc-sys is built anew whenever this changes, and `cargo build` does not know it.
deb static image sbom packages release: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)

deb: ## Build the Debian package for this machine's architecture; it lies in target/dist, as do the next ones
	@tests/need rust compiler dpkg
	@packaging/deb "$$(packaging/programs $$(uname -m)-unknown-linux-gnu)" $(dist)/gatepost_$(VERSION)_$$(dpkg --print-architecture).deb

static: ## Build the static programs, for any Linux (also: ARCH=arm64)
	@tests/need rust compiler musl-$(ARCH)
	@packaging/archive "$$(packaging/programs $(machine)-unknown-linux-musl)" $(dist)/gatepost_$(VERSION)_linux-$(ARCH).tar

image: static ## Make the container image of the static programs, without a container engine (also: ARCH=arm64)
	@tests/need certificates
	@packaging/image $(dist)/gatepost_$(VERSION)_linux-$(ARCH).tar $(dist)/gatepost_$(VERSION)_$(ARCH).oci.tar

demo-image: export CARGO_TARGET_DIR := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/unoptimised
demo-image: ## Make the image of deploy/demo.yaml quickly, unoptimised, and load it where Docker or Podman runs
	@CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
	    $(MAKE) --no-print-directory image
	@for engine in docker podman; do \
	    ! $$engine info >/dev/null 2>&1 || { $$engine load --input "$$CARGO_TARGET_DIR/dist/gatepost_$(VERSION)_$(ARCH).oci.tar"; break; }; done

sbom: ## List what is in each program, as CycloneDX
	@tests/need rust python
	@mkdir -p $(dist)
	@packaging/sbom x86_64-unknown-linux-gnu gatepostd --no-default-features --features manage >$(dist)/gatepostd_$(VERSION).cdx.json
	@packaging/sbom x86_64-unknown-linux-gnu gatepost >$(dist)/gatepost_$(VERSION).cdx.json

# What `make packages` and `make release` need.
packagers := rust compiler postgres dpkg musl-amd64 certificates python curl openssl ssh-keygen systemd mmdebstrap

packages: ## Build all packages, quickly and unoptimised, and start each on its own (as root)
	@tests/need $(packagers)
	@tests/packages

# docs/releasing.md has what comes before and after. The statements are of the files, so they come last, and the checksums after them.
release: ## All packages as they are given out: licences and advisories, built twice and compared, started, signed (RELEASE_KEY=FILE; as root)
	@tests/need $(packagers) musl-arm64 qemu cargo-deny
	@[ -z "$$(git status --porcelain)" ] || { echo "release: the files here are not those of the commit"; exit 1; }
	@packaging/standard-library x86_64-unknown-linux-musl aarch64-unknown-linux-musl
	@cargo deny --locked check
	@rm -rf $(dist)
	@tests/packages --release
	@packaging/vex >$(dist)/gatepost_$(VERSION).vex.json
	@packaging/buildinfo $(dist) >$(dist)/gatepost_$(VERSION).buildinfo
	@packaging/provenance $(dist) >$(dist)/gatepost_$(VERSION).provenance.json
	@packaging/sums $(dist) $(RELEASE_KEY)
	@! grep -q "There is no address yet" SECURITY.md || echo "release: a trial, not to be published: SECURITY.md names no address"

clean-dev: ## Remove the private Postgres and secret that `make run` made
	@if [ -S .gatepost/lock ] && [ -e .gatepost/serve.pid ] && kill -0 "$$(cat .gatepost/serve.pid)" 2>/dev/null; then \
	    echo "gatepost-dev is running here: end it first"; exit 1; fi
	@if [ -L .gatepost/elsewhere ]; then rm -rf "$$(readlink -f .gatepost/elsewhere)"; fi
	rm -rf .gatepost
