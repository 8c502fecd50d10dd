# Every target sets up what it needs, in a virtual environment of its own (.venv).
PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
OLDEST := .venv-oldest
# One more than there are cores: some tests wait for a browser or another process.
WORKERS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

.PHONY: demo test test-slow test-oldest coverage lint format docs links bench bench-page bench-full reproduce dist clean

# Tests start many processes, which would each compile the library anew where bytecode is not kept.
test test-slow test-oldest coverage: export PYTHONDONTWRITEBYTECODE =

demo: $(VENV)/.cli
	@$(BIN)/unflip demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS)

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

# The default tests with the lowest versions that pyproject.toml allows.
test-oldest: $(OLDEST)/.test
	$(OLDEST)/bin/python -m pytest -n $(WORKERS)

# The share of the lines of src that the default tests run; files below 90 % are listed.
coverage: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=
	@$(BIN)/coverage report --sort=cover | awk '$$NF + 0 < 90 || $$1 == "TOTAL"'
	@$(BIN)/coverage report --fail-under=95 --format=total >/dev/null || \
		{ echo "less than 95 % of the lines are tested"; exit 1; }

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# External links, each with the files that have it; local ones are followed by a test.
links:
	@git grep -oE "https?://[^][ <>()\"'\`{},]+[^][ <>()\"'\`{},.:;]" -- "*.md" "*.rst" "*.py" "*.toml" "*.cff" \
		"*.bib" "*.html" ":!tests" ":!benchmarks" | awk -F: '{ link = $$2 ":" $$3; \
		files[link] = files[link] " " $$1 } END { for (link in files) print link files[link] }' | sort

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# The page of the benchmarks, from the files that they have written.
bench-page: $(VENV)/.bench
	$(BIN)/python -m benchmarks.page

bench-full: $(VENV)/.bench
	$(BIN)/python -m benchmarks --full --threads 1 2 --limit 120

reproduce: $(VENV)/.bench
	$(BIN)/unflip reproduce all --peers --out docs/reproduction

dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

clean:
	rm -rf $(VENV) $(OLDEST) dist docs/_build docs/auto_examples docs/reference .coverage .coverage.*

# One stamp per group of dependencies; pyproject.toml is where they are listed.
$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { echo "no $(PYTHON) here: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.cli: $(VENV)/.created pyproject.toml
	@echo "installing unflip ..."
	@$(PIP) install -e ".[cli]"
	@touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.docs $(VENV)/.bench $(VENV)/.dist: $(VENV)/.%: $(VENV)/.cli
	@echo "installing the $* dependencies ..."
	@$(PIP) install --group $*
	@touch $@

$(OLDEST)/.test: pyproject.toml .ci/oldest
	@echo "creating $(OLDEST) with the oldest dependencies ..."
	@rm -rf $(OLDEST)
	@$(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip --quiet --quiet install --upgrade "pip>=25.1"
	@$(PYTHON) .ci/oldest > $(OLDEST)/constraints.txt
	@$(OLDEST)/bin/python -m pip --quiet --quiet install -c $(OLDEST)/constraints.txt -e ".[all]" --group test
	@touch $@
