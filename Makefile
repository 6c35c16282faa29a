# Two commands: `make run` and `make test`. `make help` lists the rest.
# Paths are relative on purpose: the folder may have blanks in its name.

.DEFAULT_GOAL := help
.PHONY: help run test check bench format clean
.SILENT:

# Extras that `make run` installs; `make run EXTRAS=` takes the core alone.
EXTRAS ?= all
# Another home folder than $HUDHUD_HOME or ~/.hudhud: make run HOME_DIR=/path
HOME_DIR ?=
# Options for pytest: make test ARGS="tests/agent -x"
ARGS ?=

python := .venv/bin/python
pip := $(python) -m pip install -qq --disable-pip-version-check --no-input
extras := $(if $(strip $(EXTRAS)),[$(strip $(EXTRAS))])

help:
	echo 'make run      install once, start the gateway, print the address to open (Ctrl-C stops it)'
	echo '              HOME_DIR=/path  another home folder      EXTRAS=  the core without extras'
	echo 'make test     install what tests need, then format, lint, types, architecture and all tests'
	echo '              ARGS="tests/agent -x"  options for pytest'
	echo 'make check    format, lint and types alone'
	echo 'make bench    speed figures as JSON'
	echo 'make format   bring the code into its form'
	echo 'make clean    remove what was installed and built here; your home folder stays'

run: .venv/.ready-to-run
	exec $(python) -m gateway run $(if $(HOME_DIR),--home "$(HOME_DIR)")

test: check .venv/.browser-looked-for
	exec $(python) -m pytest $(ARGS)

check: .venv/.ready-to-test
	echo 'format' && $(python) -m ruff format --check --quiet . || { echo 'The form is not kept: run `make format`.' >&2; exit 1; }
	echo 'lint' && $(python) -m ruff check --quiet .
	echo 'types' && $(python) -m basedpyright

bench: .venv/.ready-to-test
	exec $(python) -m tests.bench

format: .venv/.ready-to-test
	$(python) -m ruff check --quiet --fix --exit-zero .
	$(python) -m ruff format --quiet .

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready-to-run: pyproject.toml .venv/bin/python
	echo 'Installing Hudhud into .venv (once, about a minute) ...' >&2
	$(pip) --editable '.$(extras)' || { echo 'The installation failed; the lines above say why. When an extra is the reason, the core alone may do: make run EXTRAS=' >&2; exit 1; }
	touch $@

.venv/.ready-to-test: pyproject.toml .venv/bin/python
	echo 'Installing Hudhud and its tests into .venv (once, a minute or two) ...' >&2
	$(pip) --editable '.[all,dev]' || { echo 'The installation failed; the lines above say why.' >&2; exit 1; }
	touch .venv/.ready-to-run $@

# `python3` where it is new enough, else the newest of the numbered names beside it.
# Debian keeps the module that puts pip into a new environment in a package of its own: without it the machine's pip
# does the work, and without that too one sentence says what is missing.
.venv/bin/python:
	found=; for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	  if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found="$$name"; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "Hudhud needs Python 3.11 or newer; here is $$(python3 --version 2>&1 || echo none). Install one, then try again." >&2; exit 1; \
	fi; \
	rm -rf .venv; \
	if "$$found" -c 'import ensurepip' 2>/dev/null && "$$found" -m venv .venv; then exit 0; fi; \
	rm -rf .venv; \
	if "$$found" -m venv --without-pip .venv 2>/dev/null && \
	   "$$found" -m pip --python .venv/bin/python install --quiet --disable-pip-version-check pip 2>/dev/null; then exit 0; fi; \
	rm -rf .venv; \
	echo "$$found cannot make virtual environments here. On Debian or Ubuntu: sudo apt-get install python3-venv" >&2; exit 1

# The page tests drive a real browser. On Debian as root one is installed, once and at most five minutes long;
# where that does not work those tests are skipped and say so.
.venv/.browser-looked-for: .venv/bin/python
	for name in chromium chromium-browser google-chrome; do \
	  if command -v "$$name" >/dev/null; then touch $@; exit 0; fi; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo 'Installing a browser for the page tests ...' >&2; \
	  DEBIAN_FRONTEND=noninteractive timeout 300 sh -c 'apt-get -qq update && apt-get -qq -o DPkg::Lock::Timeout=60 install --no-install-recommends chromium fonts-dejavu-core' \
	    >.venv/browser.log 2>&1 </dev/null || echo 'No browser could be installed (.venv/browser.log says why): its tests will be skipped.' >&2; \
	fi; \
	touch $@
