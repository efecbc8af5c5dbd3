# Every target makes the virtual environment it needs; `make demo` and `make test` work on a bare clone.
# The newest Python from 3.11 on that is here; another one by name: make PYTHON=python3.12 test
CANDIDATES := python3.14 python3.13 python3.12 python3.11 python3 python
IS_NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
# Found when it is first needed, and once.
PYTHON = $(eval PYTHON := $(firstword $(foreach name,$(CANDIDATES),$(shell $(name) -c '$(IS_NEW_ENOUGH)' 2>/dev/null && echo $(name)))))$(PYTHON)
endif
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# Bytecode is written when a module is first used, which takes less time than compiling every
# installed file; so it has to be written where the surroundings would forbid it, too.
PIP_INSTALL := python -m pip install --quiet --disable-pip-version-check --no-compile
INSTALL := $(BIN)/$(PIP_INSTALL)
unexport PYTHONDONTWRITEBYTECODE
# The version that was tested; any other that is installed in the environment will do.
TORCH := torch==2.13.0

.PHONY: help environment demo test test-slow test-slow-sample soak test-oldest test-oldest-engines test-newest test-engines test-engines-slow java test-torch test-gpu lint docs docs-quick test-browser chromium dist bench bench-quality bench-gpu reproduce reproduce-full clean

help:
	@echo "make demo   cluster a million rows and compare with k-means (a minute with the installation of what it needs)"
	@echo "make test   lint, then run the fast tests (six minutes on two cores)"
	@echo "make environment   install what all tests need at once, torch and the engines among it"
	@echo "make test-slow   the slow tests: quality on large data, cold compilation, fuzzing"
	@echo "make test-oldest   the fast tests with the oldest supported version of every dependency; test-oldest-engines: those of Dask, Spark and Ray"
	@echo "make test-newest   upgrade every dependency to its newest version, then make test"
	@echo "make soak   random operations, kills and forged files against a model (an hour; OPERATIONS=, KILLS=, FILES= and SEED= set what is done)"
	@echo "make test-engines   run the tests on local clusters of Dask, Spark and Ray"
	@echo "make test-engines-slow   lose workers, nodes and drivers of such clusters in passes over ten million rows (ten minutes)"
	@echo "make test-torch   the tests of what works with torch, on the CPU (installs torch unless it is there)"
	@echo "make test-gpu     the tests of the GPU kernels, on the GPU of this machine"
	@echo "make lint   ruff, mypy --strict, import directions"
	@echo "make docs   the site, in build/docs, with every example of its gallery run (docs-quick: without running them)"
	@echo "make test-browser   open the site, a report and notebooks' tables in Chromium: errors, requests, both colour schemes, widths, keyboard, axe-core"
	@echo "make dist   wheel and sdist, checked, and the wheel tried in an empty environment"
	@echo "make bench  measure speed and quality side by side with NumPy, pycle and scikit-learn"
	@echo "make bench-quality   SSE against k-means, subsampling and others on many data sets, and robustness (hours; benchmarks.quality continues where it stopped)"
	@echo "make bench-gpu       on the GPU of this machine: against its limits, torch and flash-kmeans"
	@echo "make reproduce       the paper's figures, smaller, and a table of its claims (ten minutes); MNIST=FOLDER names MNIST's idx .gz files"
	@echo "make reproduce-full  the same in full (days; it continues where it stopped, and MINUTES=30 stops each figure after half an hour)"
	@echo "make clean  remove what the other targets made"

define REQUIRE_PYTHON
	@command -v "$(PYTHON)" >/dev/null || { echo "Python 3.11 or newer with venv is needed$(if $(PYTHON),; $(PYTHON) is not installed). Name one with: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; exit 1; }
endef

# The stamp is older than pyproject.toml when dependencies changed.
$(VENV)/installed: pyproject.toml
	$(REQUIRE_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[dev]'
	@touch $@

# What all tests need, by one resolution of versions instead of five: for continuous integration.
environment: pyproject.toml
	$(REQUIRE_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[dev,engines,browser]' $(TORCH)
	@touch $(VENV)/installed $(addprefix $(VENV)/installed-,engines docs browser torch)

$(VENV)/installed-bench: $(VENV)/installed
	$(INSTALL) --editable '.[bench]'
	@touch $@

$(VENV)/installed-engines: $(VENV)/installed
	$(INSTALL) --editable '.[engines]'
	@touch $@

# What the site and its gallery need, without the tools of developers.
$(VENV)/installed-docs: pyproject.toml
	$(REQUIRE_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[docs]'
	@touch $@

$(VENV)/installed-browser: pyproject.toml
	$(REQUIRE_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[browser]'
	@touch $@

$(VENV)/installed-release: $(VENV)/installed
	$(INSTALL) --editable '.[release]'
	@touch $@

# What `make reproduce` needs, without the tools of developers.
$(VENV)/installed-experiments: pyproject.toml
	$(REQUIRE_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[experiments]'
	@touch $@

# What the demo needs, without the tools of developers.
$(VENV)/installed-demo: pyproject.toml
	$(REQUIRE_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[plot]'
	@touch $@

demo: $(VENV)/installed-demo
	$(BIN)/ckm demo

PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup --ignore tests/browser

test: lint
	$(PYTEST) -m "not slow" --ignore tests/engines

test-slow: $(VENV)/installed
	$(PYTEST) -m slow --ignore tests/engines

# What continuous integration runs of the slow tests: about a minute of them.
test-slow-sample: $(VENV)/installed
	$(PYTEST) -m sampled --ignore tests/engines

# Each number is reached by one command: make soak OPERATIONS=1000000 KILLS=0 FILES=0, for example.
OPERATIONS ?= 1000000
KILLS ?= 1000
FILES ?= 100000
SEED ?= 0
soak: $(VENV)/installed
	CKM_SOAK_OPERATIONS=$(OPERATIONS) CKM_SOAK_KILLS=$(KILLS) CKM_SOAK_FILES=$(FILES) CKM_SOAK_SEED=$(SEED) \
		$(BIN)/python -m pytest -s tests/slow/test_soak_memory.py tests/slow/test_soak_kills.py tests/slow/test_fuzz_files.py

# A process per engine: while one waits for its cluster to start, the others use the cores.
test-engines: $(VENV)/installed-engines java
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m "not slow" tests/engines

# Clusters that lose workers, and drivers that are killed, in passes over ten million rows.
test-engines-slow: $(VENV)/installed-engines java
	$(BIN)/python -m pytest -m slow tests/engines

# The lower bounds of pyproject.toml, in an environment of its own.
$(OLDEST)/installed: pyproject.toml tools/oldest.py
	$(REQUIRE_PYTHON)
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/$(PIP_INSTALL) packaging
	$(OLDEST)/bin/python tools/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/$(PIP_INSTALL) --constraint $(OLDEST)/constraints.txt --editable '.[dev]'
	@touch $@

$(OLDEST)/installed-engines: $(OLDEST)/installed
	$(OLDEST)/bin/$(PIP_INSTALL) --constraint $(OLDEST)/constraints.txt --editable '.[dev,engines]'
	@touch $@

# Old packages may use what newer packages below them call deprecated.
OLDEST_PYTEST := $(OLDEST)/bin/python -m pytest -W ignore::DeprecationWarning --ignore tests/browser

test-oldest: $(OLDEST)/installed
	$(OLDEST_PYTEST) -n auto --dist loadgroup -m "not slow" --ignore tests/engines

test-oldest-engines: $(OLDEST)/installed-engines java
	$(OLDEST_PYTEST) -n 2 --dist loadfile tests/engines

# A fresh clone gets the newest versions from `make test`; this is for an environment with older ones.
test-newest:
	rm -f $(VENV)/installed
	$(MAKE) $(VENV)/installed
	$(INSTALL) --upgrade --upgrade-strategy eager --editable '.[dev]'
	$(MAKE) test

# Spark runs on Java 17; the tests of Dask and Ray do without. apt-get waits for another one, which
# may be installing Chromium.
java:
	@command -v java >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -qq -y -o DPkg::Lock::Timeout=300 openjdk-17-jre-headless >/dev/null; } || \
		echo "Java is not installed, so Spark's tests are left out; install it with: apt-get install openjdk-17-jre-headless"

$(VENV)/installed-torch: $(VENV)/installed
	$(BIN)/python -c 'import torch' 2>/dev/null || $(INSTALL) $(TORCH)
	@touch $@

# Other kernels are tried by `make test`.
test-torch: $(VENV)/installed-torch
	$(PYTEST) -k "torch or gpu or tensors" tests/kernels/test_torch.py tests/laws/test_kernels.py tests/kernels/test_gpu.py tests/decoding/test_decoding_gpu.py tests/kmeans/test_points_gpu.py tests/sources/test_streams.py::test_tensors

test-gpu: $(VENV)/installed-torch
	$(BIN)/python -c 'import torch; assert torch.cuda.is_available(), "there is no GPU that torch can use"'
	$(BIN)/python -m pytest tests/kernels tests/laws/test_kernels.py tests/decoding/test_decoding_gpu.py tests/kmeans/test_points_gpu.py

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Warnings are errors, among them links that lead nowhere. SPHINXOPTS adds options.
SPHINX := $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -d build/doctrees -b html docs build/docs

docs: $(VENV)/installed-docs
	$(BIN)/python -m tools.benchmark_pages
	$(SPHINX) $(SPHINXOPTS)
	@echo "The site is build/docs/index.html."

docs-quick: $(VENV)/installed-docs
	$(BIN)/python -m tools.benchmark_pages
	$(SPHINX) -D plot_gallery=0 $(SPHINXOPTS)

# A Chromium that is installed, else Debian's, else that of npm's @sparticuz/chromium; it says which.
chromium:
	$(REQUIRE_PYTHON)
	@$(PYTHON) tests/browser/chromium.py

test-browser: $(VENV)/installed-browser docs-quick chromium
	$(BIN)/python -m pytest tests/browser

# A release: `twine check` reads its metadata, the fast tests run from the sdist, and the wheel is
# used in an environment of its own. Every extra resolves: $(BIN)/nox -s extras. Other Pythons: $(BIN)/nox.
dist: $(VENV)/installed-release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/try_sdist.py dist/*.tar.gz
	$(BIN)/python tools/try_wheel.py dist/*.whl

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks.kernel
	$(BIN)/python -m benchmarks.end_to_end
	$(BIN)/python -m benchmarks.scaling
	$(BIN)/python -m benchmarks.predict
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.structured
	$(BIN)/python -m benchmarks.sources
	$(BIN)/python -m benchmarks.remote
	$(BIN)/python -m benchmarks.decoder
	$(BIN)/python -m benchmarks.clompr_quality
	$(BIN)/python -m benchmarks.draw_speed

bench-gpu: $(VENV)/installed-torch
	$(BIN)/python -m benchmarks.gpu
	$(BIN)/python -m benchmarks.gpu_decode
	$(BIN)/python -m benchmarks.gpu_wide

bench-quality: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks.quality
	$(BIN)/python -m benchmarks.robustness
	$(BIN)/python -m benchmarks.statuses
	$(BIN)/python -m benchmarks.mixtures

FIGURES := figure1 figure2 figure3 figure4 outlook_projection outlook_spectral outlook_kernel
OPTIONS = $(if $(MNIST),--mnist $(MNIST)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(LARGEST),--largest $(LARGEST))

reproduce: $(VENV)/installed-experiments
	@for figure in $(FIGURES); do $(BIN)/python -m experiments.$$figure $(OPTIONS) || exit 1; done
	$(BIN)/python -m experiments.claims

reproduce-full: $(VENV)/installed-experiments
	@for figure in $(FIGURES); do $(BIN)/python -m experiments.$$figure --full $(OPTIONS) || exit 1; done
	$(BIN)/python -m experiments.claims --full
	$(BIN)/python -m experiments.tables

clean:
	rm -rf $(VENV) $(OLDEST) demo dist build docs/api docs/gallery docs/measured .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
