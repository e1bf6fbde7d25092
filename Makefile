# make demo      Triad from L1, L2 and memory on the modelled A64FX, side by side
# make answer    what limits Triad from L1: the first part of the demo, ready after two thirds of its time
# make release   the fastest fxscope, target/pgo/release/fxscope: for this host, with profile-guided optimisation
# make test      the tests; installs what it needs through apt when it can. Before a change lands, make lint and make slow-test
#                must pass, too: continuous integration runs all three
# make slow-test   tests that make test leaves out because they take minutes: kernels-test, programs-test and the quick suite of measured
#                rows among them
# make kernels-test   rebuilds all of kernels/prebuilt and guest/prebuilt, byte for byte, and runs the programs under QEMU
# make programs-test  those programs of make programs that take seconds, with the debug build
# make fuzz-isa  compares more than ten million random instructions with QEMU; SEED=N for others
# make fuzz-import   damaged files of every format, given to every importer, for five minutes; SECONDS=N for longer, SEED=N
# make programs  Debian's arm64 programs and numpy under fxscope and under QEMU, one line each; takes minutes
# make mpi       programs with MPI by Debian's arm64 Open MPI and MPICH, 2 to 12 ranks; takes minutes
# make npb       the NAS benchmarks with OpenMP, class S, on 12 threads in timing mode; takes minutes each
# make kernels   rebuilds the benchmark programs in kernels/prebuilt
# make browser-test  opens the pages of fxscope in Chromium: layout, accessibility, print, and how they look beside testdata/pictures
# make browser-accept  keeps the pictures of the pages as they look now
# make examples  builds and runs the programs of examples/, and puts what they print into their pages and the tutorials
# make site      the documentation as a site with search, target/site/index.html
# make export-test  opens the exports of fxscope in speedscope and in Go's pprof
# make office-test   opens the workbook of fxscope report in LibreOffice
# make python-test  the Python package: its tests and types, with the debug build
# make wheel-test   installs its wheel in a fresh environment and runs the tests there; takes minutes. PROFILE=dev: with the debug build
# make slurm-test    sweeps of the Python package as jobs of a real Slurm of one node, which it starts and ends; as root
# make ssh-test      the same on a host reached by SSH: this one, with a server that it starts and ends; as root
# make notebook-test runs the notebooks of docs/notebooks at small sizes; takes minutes
# make calibrate-test  measures a simulated machine with other numbers, and has fits find every one; takes minutes
# make jitter-test  injects noise into a measurement of this machine and finds it, and compares with an independent loop; as root
# make osnoise-test  boots Debian kernels with tracers in QEMU, measures their noise and has it named; takes minutes
# make mutants   changes the sources between the pipeline and memory, one change at a time; at least 85 % must make a test fail.
#                Takes hours; SHARD=k/n for every n-th change
# make validate  compares the model with every measured figure; takes minutes
# make musl      fxscope as one static file; with its size, and what is in it. PROFILE=fast: ready sooner, and larger; ARCH=aarch64: for
#                64-bit Arm hosts, as in make deb and make wheel
# make deb       a package for Debian and Ubuntu with that file, man pages, completions, programs and documents
# make wheel     the Python package with that file, for every Linux, in target/wheels
# make arm64-test    builds that file, the package and the wheel for 64-bit Arm hosts; under QEMU, they count what this host's file counts
# make dist      what a release consists of, in target/dist: archives, packages, wheels, notes, bills of materials, SHA256SUMS
# make container    builds and runs the image of Containerfile, with podman or buildah
# make install-test    installs by every way into clean places, and runs what was installed; as root
# make demo-test    times the first minute: from an installed package to the first answer, and from a fresh clone
# make deny      licences, sources and duplicates of dependencies, by cargo-deny; known vulnerabilities where its database can be fetched
# make sbom      the bill of materials, target/sbom/*.cdx.json, by cargo-cyclonedx
# make reproducible    builds twice, in different folders, and compares the bytes; takes as long as that
# make fmt       formats the sources
# make lint      formatting and clippy
# make prose     phrases to avoid, references in documents and, where typos is installed, spelling

# Where rustup puts cargo, for shells without it in their PATH.
export PATH := $(HOME)/.cargo/bin:$(PATH)

# Rust links with the C compiler of the host, and the bundled SQLite is built with it.
HOST_TOOLS := cc:gcc,libc6-dev
CROSS_TOOLS := aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu /usr/aarch64-linux-gnu/lib/libc.a:libc6-dev-arm64-cross
TEST_TOOLS := $(CROSS_TOOLS) aarch64-linux-gnu-g++:g++-aarch64-linux-gnu \
	aarch64-linux-gnu-gfortran:gfortran-aarch64-linux-gnu qemu-aarch64:qemu-user c++:g++ unshare:util-linux \
	/usr/lib/python3/dist-packages/jsonschema:python3-jsonschema

# Some tests wait for helpers that hang: more of them than there are processors run at a time.
TEST_THREADS := $(shell echo $$((2 * $$(nproc))))

# The part of kernels-test and of programs-test that make test runs: programs of one thread and of many, processes, Debian's
# libraries.
FEW_KERNELS := triad-l1 rowadd sharing
FEW_PROGRAMS := @(processors|shell-pipes|sqlite3|libgomp)

# Tests that are skipped are listed here, with the reason.
export FXSCOPE_SKIPPED := $(CURDIR)/target/skipped.txt

.PHONY: answer demo release test slow-test kernels-test programs-test validate programs mpi npb fuzz-isa fuzz-import calibrate-test jitter-test osnoise-test examples site browser-test browser-accept export-test office-test python-test wheel-test slurm-test ssh-test notebook-test mutants kernels fmt lint prose cargo musl deb wheel arm64-test dist container install-test demo-test deny sbom reproducible

cargo:
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust as https://rustup.rs says" >&2; exit 1; }

# The library's example is built first: it needs neither the laboratories nor the command line.
answer: cargo
	.ci/need $(HOST_TOOLS)
	cargo build --profile demo -p fxscope-session --example answer
	kernels/demo.sh first target/demo/examples/answer target/demo/triad

demo: answer
	cargo build --profile demo -p fxscope --no-default-features
	kernels/demo.sh others target/demo/fxscope target/demo/triad

release: cargo
	.ci/need $(HOST_TOOLS)
	rustup component add llvm-tools
	cargo run --release -p xtask -- release

test: cargo
	.ci/need $(HOST_TOOLS) $(TEST_TOOLS)
	programs/debian.sh --fetch
	rm -f $(FXSCOPE_SKIPPED)
	RUST_TEST_THREADS=$(TEST_THREADS) cargo test --workspace
	kernels/demo.sh first target/debug/examples/answer target/debug/triad
	$(MAKE) -C kernels check verify PROGRAMS="$(FEW_KERNELS)"
	$(MAKE) -C guest check
	ONLY="$(FEW_PROGRAMS)" FXSCOPE=target/debug/fxscope programs/debian.sh --fast
	target/debug/fxscope validate l1 --cache target/validate
	target/debug/fxscope validate l2 --cache target/validate
	.ci/skipped "make test" $(FXSCOPE_SKIPPED)

# Tests in modules named slow, the fuzz targets, which no test runs, the quick suite of measured rows, and all kernels and programs.
slow-test: cargo
	.ci/need $(HOST_TOOLS) $(TEST_TOOLS)
	rm -f $(FXSCOPE_SKIPPED)
	cargo test --workspace --tests -- --ignored slow::
	cargo check --manifest-path fuzz/Cargo.toml --locked --target-dir target
	target/debug/fxscope validate quick --cache target/validate
	$(MAKE) kernels-test programs-test
	.ci/skipped "make slow-test" $(FXSCOPE_SKIPPED)

kernels-test:
	.ci/need $(CROSS_TOOLS) qemu-aarch64:qemu-user
	$(MAKE) -C kernels check verify
	$(MAKE) -C guest check

programs-test: cargo
	.ci/need $(HOST_TOOLS) $(TEST_TOOLS)
	cargo build -p fxscope
	FXSCOPE=target/debug/fxscope programs/debian.sh --fast

validate: cargo
	.ci/need $(HOST_TOOLS)
	cargo build --release
	-programs/libraries.sh
	target/release/fxscope validate full

programs: cargo
	.ci/need $(HOST_TOOLS) $(TEST_TOOLS)
	cargo build --release
	programs/debian.sh

mpi: cargo
	.ci/need $(HOST_TOOLS) $(CROSS_TOOLS)
	cargo build --release
	programs/mpi.sh

npb: cargo
	.ci/need $(HOST_TOOLS) $(TEST_TOOLS)
	cargo build --release
	programs/npb.sh

# 4,500 cases of each encoding, 450,000 blocks of nine instructions on average, and words that need not be instructions.
SEED ?= 2
fuzz-isa: cargo
	.ci/need $(HOST_TOOLS) $(CROSS_TOOLS) qemu-aarch64:qemu-user
	FXSCOPE_DIFF_SEED=$(SEED) FXSCOPE_DIFF_COUNT=4500 FXSCOPE_DIFF_BLOCKS=450000 FXSCOPE_DIFF_WORDS=500000 \
		cargo test -p fxscope-aarch64 --test it differential:: -- --nocapture

SECONDS ?= 300
fuzz-import: cargo
	.ci/need $(HOST_TOOLS)
	FXSCOPE_FUZZ_SECONDS=$(SECONDS) FXSCOPE_FUZZ_SEED=$(SEED) cargo test -p fxscope-import --test it mutations:: -- --nocapture

# axe-core, which judges the accessibility of pages, comes from npm and is not kept.
AXE := axe-core-4.14.1
AXE_DIGEST := e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
browser-test: cargo
	.ci/need $(HOST_TOOLS) chromium-headless-shell:chromium-headless-shell npm:npm
	mkdir -p target/axe
	cd target/axe && npm pack --silent axe-core@$(AXE:axe-core-%=%) && echo "$(AXE_DIGEST)  $(AXE).tgz" | sha256sum --check && tar xzf $(AXE).tgz
	FXSCOPE_BROWSER=chromium-headless-shell FXSCOPE_AXE=$(CURDIR)/target/axe/package/axe.min.js \
		cargo test -p fxscope-report --test it browser:: -- --nocapture
	FXSCOPE_BROWSER=chromium-headless-shell FXSCOPE_AXE=$(CURDIR)/target/axe/package/axe.min.js \
		cargo test -p fxscope --test it pictures:: -- --nocapture

browser-accept: cargo
	.ci/need $(HOST_TOOLS) chromium-headless-shell:chromium-headless-shell
	FXSCOPE_BROWSER=chromium-headless-shell FXSCOPE_ACCEPT=1 cargo test -p fxscope --test it pictures::every_page -- --nocapture

# Commands of documents; without Debian's arm64 Python and MPICH, those pages stay as they are.
examples: cargo
	.ci/need $(HOST_TOOLS) $(TEST_TOOLS)
	programs/debian.sh --fetch
	programs/mpi.sh --fetch
	FXSCOPE_ACCEPT=1 cargo test -p fxscope --test it documents:: -- --include-ignored

MDBOOK := 0.5.2
site: cargo
	.ci/need $(HOST_TOOLS)
	cargo build --release
	test -x target/tools/bin/mdbook || cargo install --locked mdbook --version $(MDBOOK) --root target/tools
	docs/site/build.sh

# speedscope comes from npm and is not kept.
SPEEDSCOPE := speedscope-1.25.0
SPEEDSCOPE_DIGEST := 2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03
export-test: cargo
	.ci/need $(HOST_TOOLS) $(CROSS_TOOLS) chromium-headless-shell:chromium-headless-shell npm:npm go:golang-go
	mkdir -p target/speedscope
	cd target/speedscope && npm pack --silent speedscope@$(SPEEDSCOPE:speedscope-%=%) && echo "$(SPEEDSCOPE_DIGEST)  $(SPEEDSCOPE).tgz" | sha256sum --check && tar xzf $(SPEEDSCOPE).tgz
	FXSCOPE_BROWSER=chromium-headless-shell FXSCOPE_SPEEDSCOPE=$(CURDIR)/target/speedscope/package FXSCOPE_GO=go \
		cargo test -p fxscope --test it viewers:: -- --nocapture

office-test: cargo
	.ci/need $(HOST_TOOLS) soffice:libreoffice-calc
	FXSCOPE_OFFICE=soffice cargo test -p fxscope-report --test it spreadsheet:: -- --nocapture

# Both environments are fresh, so that nothing is there but what the package asks for.
PYTHON_TOOLS := python3:python3 /usr/share/doc/python3-venv:python3-venv
MATURIN := maturin==1.9.6
python-test: cargo
	.ci/need $(HOST_TOOLS) $(PYTHON_TOOLS)
	rm -rf target/python && python3 -m venv target/python
	target/python/bin/pip install --quiet "$(MATURIN)"
	export PIP_CONSTRAINT=$(CURDIR)/python/constraints.txt && cd python && VIRTUAL_ENV=$(CURDIR)/target/python $(CURDIR)/target/python/bin/maturin develop --quiet --profile dev --extras test
	cd python && ../target/python/bin/mypy && ../target/python/bin/pytest -q

wheel-test: wheel
	rm -rf target/wheel-test && python3 -m venv target/wheel-test
	target/wheel-test/bin/pip install --quiet --constraint python/constraints.txt "$$(echo $(WHEEL))[test]"
	cd python && ../target/wheel-test/bin/pytest -q -p no:cacheprovider

# With the environment of python-test, if that is there.
SLURM_TOOLS := slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client munged:munge
PYTHON_ENVIRONMENT := target/python/bin/pytest
$(PYTHON_ENVIRONMENT):
	$(MAKE) python-test

slurm-test: cargo $(PYTHON_ENVIRONMENT)
	.ci/need $(SLURM_TOOLS)
	cd python && FXSCOPE_SLURM=1 ../.ci/slurm ../target/python/bin/pytest -q -p no:cacheprovider tests/test_slurm.py

ssh-test: cargo $(PYTHON_ENVIRONMENT)
	.ci/need /usr/sbin/sshd:openssh-server ssh:openssh-client
	cd python && FXSCOPE_SSH=1 ../.ci/sshd ../target/python/bin/pytest -q -p no:cacheprovider tests/test_ssh.py

notebook-test: cargo $(PYTHON_ENVIRONMENT)
	.ci/need $(CROSS_TOOLS)
	cd python && FXSCOPE_NOTEBOOKS=1 ../target/python/bin/pytest -q -p no:cacheprovider tests/test_notebooks.py

calibrate-test: cargo
	.ci/need $(HOST_TOOLS)
	cargo test --profile fast -p fxscope --test it calibrate::every_key:: -- --ignored --nocapture

jitter-test: cargo
	.ci/need $(HOST_TOOLS)
	cargo test --profile fast -p fxscope-osnoise --test it -- --ignored --nocapture --test-threads 1 injected:: independent::

osnoise-test: cargo
	.ci/need $(HOST_TOOLS) qemu-system-x86_64:qemu-system-x86
	cargo build -p fxscope-osnoise --example inject
	cargo test -p fxscope --test it jitter_kernels:: -- --ignored --nocapture --test-threads 1

# Needs cargo-mutants: cargo install cargo-mutants --locked --version 27.1.0.
SHARD ?= 0/1
mutants: cargo
	.ci/need $(HOST_TOOLS)
	.ci/mutants $(SHARD) 85

kernels:
	.ci/need $(CROSS_TOOLS)
	$(MAKE) -C kernels

fmt: cargo
	cargo fmt --all

# Spelling needs typos, a binary of 10 MB: pip install typos==1.52.0, or cargo install typos-cli --version 1.52.0.
prose: cargo
	cargo run -q -p xtask -- tidy
	@if command -v typos >/dev/null; then typos; else echo "spelling is not checked: typos is not installed" >&2; fi

lint: cargo
	.ci/need $(HOST_TOOLS)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

# ARCH=aarch64: for 64-bit Arm hosts, cross-compiled.
PROFILE ?= dist
ARCH ?= $(shell uname -m)
STATIC := $(ARCH)-unknown-linux-musl
STATIC_FXSCOPE := target/$(STATIC)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/fxscope
STATIC_TOOLS := musl-gcc:musl-tools strip:binutils
ifneq ($(ARCH),$(shell uname -m))
STATIC_TOOLS := $(CROSS_TOOLS) qemu-aarch64:qemu-user
endif
musl: cargo
	.ci/need $(HOST_TOOLS) $(STATIC_TOOLS)
	rustup target add $(STATIC)
	packaging/static $(ARCH) cargo build --locked --profile $(PROFILE) --target $(STATIC) -p fxscope
	packaging/size $(STATIC_FXSCOPE) $(ARCH) $(if $(filter dist,$(PROFILE)),25)

DEB = target/deb/$(ARCH)/*.deb
deb: musl
	.ci/need dpkg-deb:dpkg
	packaging/assets $(STATIC_FXSCOPE) target/packaging
	rm -rf target/deb/$(ARCH)
	PATH=$$(.ci/tool cargo-deb 3.8.0) && cargo deb -p fxscope --no-build --no-strip --profile $(PROFILE) --target $(STATIC) --output target/deb/$(ARCH)/

# Around the static file, which maturin builds as musl does, so that it builds nothing more: for every Linux, with glibc or musl.
WHEEL = target/wheels/$(ARCH)/*.whl
wheel: musl
	.ci/need $(PYTHON_TOOLS)
	test -x target/maturin/bin/maturin || { python3 -m venv target/maturin && target/maturin/bin/pip install --quiet "$(MATURIN)"; }
	rm -rf target/wheels/$(ARCH)
	cd python && ../packaging/static $(ARCH) ../target/maturin/bin/maturin build --quiet --locked --profile $(PROFILE) --target $(STATIC) \
		--compatibility manylinux2014 musllinux_1_1 --out ../target/wheels/$(ARCH)

# The other architecture's file counts what this one's counts.
arm64-test: musl
	$(MAKE) --no-print-directory deb wheel ARCH=aarch64
	packaging/arm64-test $(STATIC_FXSCOPE) $(subst $(STATIC),aarch64-unknown-linux-musl,$(STATIC_FXSCOPE)) target/deb/aarch64/*.deb target/wheels/aarch64/*.whl

# A release has the packages of these; make dist ARCHS=x86_64 only those of one.
ARCHS ?= $(sort $(shell uname -m) aarch64)
dist: cargo
	for arch in $(ARCHS); do $(MAKE) --no-print-directory deb wheel sbom ARCH=$$arch || exit; done
	packaging/release $(STATIC_FXSCOPE) $(ARCHS)

container: musl
	packaging/container $(STATIC_FXSCOPE)

install-test: deb wheel
	.ci/need debootstrap:debootstrap unshare:util-linux
	packaging/install-test $(STATIC_FXSCOPE) $(PROFILE) $(DEB) $(WHEEL)

demo-test: deb
	.ci/need debootstrap:debootstrap
	packaging/first-minute $(DEB)

deny: cargo
	PATH=$$(.ci/tool cargo-deny 0.20.2) && cargo deny check licenses bans sources
	@PATH=$$(.ci/tool cargo-deny 0.20.2) && if cargo deny fetch db 2>/dev/null; then cargo deny check advisories; \
		else echo "known vulnerabilities are not checked: their database cannot be fetched" >&2; fi

sbom: cargo
	PATH=$$(.ci/tool cargo-cyclonedx 0.5.9) && packaging/sbom $(STATIC)

reproducible: cargo
	packaging/reproducible $(PROFILE) $(ARCH)
