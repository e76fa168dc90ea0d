# `make demo` and `make test` set everything up by themselves: they need Python 3.11 or newer, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile
# Several times as fast as pip, which takes over where uv is not to be had or does not succeed.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
# Nothing is compiled at installation, so each module is compiled when it is first imported. Where the environment forbids
# Python to keep the result, every process of the tests would compile its imports again: five seconds each.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all style lint docs bench package clean help

help:
	@echo "make demo      a simulator that is wrong, in ten seconds; then the paper in small, with a report: a few minutes"
	@echo "make test      linter, types and tests, a few minutes"
	@echo "make test-all  the same with the long statistical tests"
	@echo "make docs      the documentation as a site, in site/"
	@echo "make package   wheel and sdist, each installed in an empty environment and tried"
	@echo "make bench     speed beside gymnax and mctx, on one core"
	@echo "make clean     removes the virtual environment and everything built"

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "uamcts needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	@echo "setting up $(VENV) (once; about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) uv 2>/dev/null || true
	@$(UV) --editable '.[dev]' 2>/dev/null || { $(PIP) --upgrade 'pip>=24' && $(PIP) --editable '.[dev]'; }
	@touch $@

demo: $(READY)
	@echo "A street closes, and the simulator does not know it. The agent finds out where."
	@$(BIN)/python examples/closing_street.py --quick --report --map
	@echo
	@echo "The paper in small: three games and a gridworld in which the model is wrong."
	@$(BIN)/uamcts reproduce space_invaders freeway breakout two_way --quick --out results/quick

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

lint: style
	$(BIN)/mypy

# The types are checked among the tests, by tests/test_types.py.
test: style
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not long"

test-all: style
	XLA_FLAGS= $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

docs: $(READY)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs site

bench: $(READY)
	@$(PIP) --editable '.[bench]'
	$(BIN)/uamcts bench

package: $(READY)
	$(BIN)/python tests/build_and_install.py

clean:
	rm -rf $(VENV) results site .pytest_cache .mypy_cache .ruff_cache .nox dist build
