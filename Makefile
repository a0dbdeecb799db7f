# Two commands a newcomer needs: `make demo` and `make test`. Both make their own environment.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV ?= .venv
RUN = $(VENV)/bin/python
EXTRAS ?= dev
TEST_WORKERS ?= auto
# A file stays with one worker; the files start in the order of tests/conftest.py, slow ones first.
# A worker that dies ends the tests: with another in its place xdist waits for ever for the last file.
TEST = $(RUN) -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0
PACKAGING = setup.py pyproject.toml

.PHONY: demo test test-all test-quick test-flink lint types wheel clean

demo: $(VENV)/installed
	$(RUN) -m tools.demo $(DEMO_FLAGS)

test: $(VENV)/installed-$(EXTRAS)
	$(TEST) -m "not long" $(TEST_FLAGS)

test-all: $(VENV)/installed-$(EXTRAS)
	$(TEST) $(TEST_FLAGS)

test-quick: $(VENV)/installed-$(EXTRAS)
	$(TEST) -m "not slow" $(TEST_FLAGS)

# Names the job server by KERAS_BERT_FLINK_SERVER (a command that starts one) or
# KERAS_BERT_FLINK_ENDPOINT (HOST:PORT of a running one), and compares its shards with the local ones.
test-flink: $(VENV)/installed-$(EXTRAS)
	$(RUN) -m tests.support.run_with_flink

lint: $(VENV)/installed-$(EXTRAS)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(VENV)/installed-$(EXTRAS)
	$(RUN) -m mypy

wheel: $(VENV)/installed-$(EXTRAS)
	$(RUN) -m build --wheel --outdir dist .

clean:
	rm -rf demo build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The folder is installed in place (-e), so that the environment always runs the present code.
$(VENV)/installed: $(PACKAGING)
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Error: Python 3.11 or newer is needed; name it: make PYTHON=/path/to/python3"; exit 1; }
	test -x $(RUN) || "$(PYTHON)" -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/installed-$(EXTRAS): $(VENV)/installed
	$(RUN) -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	touch $@
