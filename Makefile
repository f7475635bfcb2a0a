# Every target sets up what it needs in .venv.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# An environment as a plain install gives it, without torch, where searching, indexing and serving are tested once more.
LIGHT := .venv-light
LIGHT_STAMP := $(LIGHT)/.ready
LIGHT_TESTS := tests/test_light.py tests/retrieval/test_retriever.py tests/retrieval/indexing/test_indexing.py \
  tests/cli/test_search.py tests/cli/test_index.py tests/cli/test_verify.py tests/cli/test_calibrate.py \
  tests/server/test_app.py tests/server/test_search.py tests/server/test_uploads.py
PAGE := src/evidex/server/static/index.html
MODULES := frontend/node_modules/.package-lock.json
SERVE ?= 1
# Workers that share the tests, file by file, so that what the tests of a file share is made once.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile
RSICD ?= data/rsicd

.PHONY: setup page browser demo docs test light check bench wheel weights large-model clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip==26.3"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[train,fast,cluster,dev,benchmark]"
	touch $(STAMP)

# The page's third-party code comes from npm, pinned by its lock file, and is bundled into the package.
page: $(PAGE)

$(PAGE): $(MODULES) $(wildcard frontend/src/* frontend/*.mjs)
	cd frontend && npm run build

$(MODULES): frontend/package.json frontend/package-lock.json
	cd frontend && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.package-lock.json

# A real browser for the page's tests; they say so and skip where none can be installed. apt's own user is not let near
# what it needs in some containers, so it stays who it is.
APT := apt-get -o APT::Sandbox::User=root -qq
browser:
	@command -v chromium >/dev/null || ($(APT) update && $(APT) install -y chromium >/dev/null) \
	  || echo "no chromium here: the browser tests will skip"

demo: setup page
	$(BIN)/python scripts/demo.py $(if $(filter 0,$(SERVE)),--no-serve)

# The documentation as a site, site/index.html; it needs no network, to build or to read.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# With the page, the model and the lexicon inside; the Dockerfile installs it.
wheel: setup page
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps -w dist .

check: setup $(MODULES)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd frontend && npm run --silent check
	$(PYTEST) -m "not slow and not gpu and not browser and not data"

light: $(LIGHT_STAMP)
	$(LIGHT)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow" $(LIGHT_TESTS)

$(LIGHT_STAMP): pyproject.toml constraints.txt
	test -x $(LIGHT)/bin/python || $(PYTHON) -m venv $(LIGHT) || python3 -m venv $(LIGHT)
	$(LIGHT)/bin/python -m pip install --quiet --upgrade "pip==26.3"
	$(LIGHT)/bin/python -m pip install --quiet -c constraints.txt -e . pytest pytest-xdist hypothesis httpx
	touch $(LIGHT_STAMP)

test: page check light browser
	$(PYTEST) -m "(slow or browser or data) and not gpu"

bench: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[bench]"
	for script in degrade scan encode index start; do $(BIN)/python benchmarks/$$script.py || exit 1; done

# The large recipe of docs/benchmark.md, for a machine with a GPU: runs/large/large-s0/model.safetensors.
# SET="train.batch_size=8 train.epochs=1" and the like change all of its runs.
large-model: setup
	$(BIN)/python scripts/fetch_weights.py resnet50 efficientnet_lite0 efficientnet_lite2 minilm
	$(BIN)/evidex study configs/study/mentors.toml --output runs/large --dataset $(RSICD) $(SET)
	$(BIN)/evidex study configs/study/large.toml --output runs/large --dataset $(RSICD) $(SET) --only large-s0

weights: setup
	$(BIN)/python scripts/fetch_weights.py

clean:
	rm -rf $(VENV) $(LIGHT) demo runs build dist site src/*.egg-info
