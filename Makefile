# Every target sets up what it needs, in a virtual environment of its own (.venv).
PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

.PHONY: demo test test-slow coverage lint format docs bench bench-full reproduce clean

demo: $(VENV)/.cli
	@$(BIN)/unflip demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

# The share of the lines of src that the default tests run; files below 90 % are listed.
coverage: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --cov --cov-report=
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

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

bench-full: $(VENV)/.bench
	$(BIN)/python -m benchmarks --full --threads 1 2 --limit 120

reproduce: $(VENV)/.bench
	$(BIN)/unflip reproduce all --peers --out docs/reproduction

clean:
	rm -rf $(VENV) docs/_build docs/auto_examples docs/reference .coverage .coverage.*

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

$(VENV)/.test $(VENV)/.lint $(VENV)/.docs $(VENV)/.bench: $(VENV)/.%: $(VENV)/.cli
	@echo "installing the $* dependencies ..."
	@$(PIP) install --group $*
	@touch $@
