# Two commands a newcomer needs: `make demo` and `make test`. Both make their own environment.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV ?= .venv
RUN = $(VENV)/bin/python
EXTRAS ?= dev
TEST_WORKERS ?= auto
# A file stays with one worker; the files start in the order of tests/conftest.py, slow ones first.
# A worker that dies ends the tests: with another in its place xdist waits for ever for the last file.
TEST = $(RUN) -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0
# Each part has fresh workers, for TensorFlow keeps the memory of what it compiled; the last part is
# the rest. All parts run, and one that fails, or nothing that is run at all, is a failure. Tests
# that are named in TEST_FLAGS are run alone.
OWN_PARTS = tests/keras_bert_impl tests/pipelines tests/tools
PARTS = "tests/keras_bert_impl keras_bert_impl" "tests/pipelines tests/tools pipelines tools" \
  "tests $(OWN_PARTS:%=--ignore=%)"
NAMED = $(filter tests/% keras_bert_impl/% pipelines/% tools/%,$(TEST_FLAGS))
define run_parts
@ran=; failed=; export COMPILED_FOR_TESTS="$$(mktemp -d)"; \
trap 'rm -rf "$$COMPILED_FOR_TESTS"' EXIT; \
for part in $(if $(NAMED),"",$(PARTS)); do \
  $(TEST) $(1) $(TEST_FLAGS) $$part; code=$$?; \
  if [ $$code = 0 ]; then ran=1; elif [ $$code != 5 ]; then failed=1; fi; \
done; [ -n "$$ran" ] && [ -z "$$failed" ]
endef
# What pip downloads is shown, so that one sees that something happens; `PIP_FLAGS=--quiet` is silent.
PIP = $(RUN) -m pip install --disable-pip-version-check $(PIP_FLAGS)
PACKAGING = setup.py pyproject.toml
# Extras that are installed with the rest, and looked up once: WITH=[dev,docs].
WITH ?=

.PHONY: demo docs test test-all test-quick test-flink lint types wheel clean

demo: $(VENV)/installed
	$(RUN) -m tools demo $(DEMO_FLAGS)

test: $(VENV)/installed-$(EXTRAS)
	$(call run_parts,-m "not long")

test-all: $(VENV)/installed-$(EXTRAS)
	$(call run_parts)

test-quick: $(VENV)/installed-$(EXTRAS)
	$(call run_parts,-m "not slow")

# Names the job server by KERAS_BERT_FLINK_SERVER (a command that starts one) or
# KERAS_BERT_FLINK_ENDPOINT (HOST:PORT of a running one), and compares its shards with the local ones.
test-flink: $(VENV)/installed-$(EXTRAS)
	$(RUN) -m tests.support.run_with_flink

lint: $(VENV)/installed-$(EXTRAS)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(VENV)/installed-$(EXTRAS)
	$(RUN) -m mypy

# Runs the examples of the tutorials; a warning is an error. DOCS_FLAGS="-D run_examples=0" is quicker.
docs: $(VENV)/installed-docs
	$(RUN) -m sphinx --fail-on-warning --keep-going --quiet $(DOCS_FLAGS) docs build/docs

wheel: $(VENV)/installed-$(EXTRAS)
	$(RUN) -m build --wheel --outdir dist .

clean:
	rm -rf demo build docs/_run dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The folder is installed in place (-e), so that the environment always runs the present code.
$(VENV)/installed: $(PACKAGING)
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Error: Python 3.11 or newer is needed; name it: make PYTHON=/path/to/python3"; exit 1; }
	test -x $(RUN) || "$(PYTHON)" -m venv $(VENV)
	@echo "Installing TensorFlow and what else is needed into $(VENV): 1 GB, one to three minutes."
	$(PIP) -e ".$(WITH)"
	touch $@

$(VENV)/installed-%: $(VENV)/installed
	$(PIP) --quiet -e ".[$*]"
	touch $@
