# Everything a newcomer needs: `make demo` and `make test` set up what they need in .venv first; only Python 3.10+ must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
SPARK_READY := $(VENV)/.ready-spark
DOCS_READY := $(VENV)/.ready-docs
# In several worker processes, two of them for the tests on Ray: tests/conftest.py says how many, and what goes where.
PARALLEL := -n auto --dist loadgroup --no-loadscope-reorder
SEEDS ?= 2000
# queries of SQL over tables that change, which take longer: a tenth of the seeds
CHANGING := sql-q4 sql-q9 sql-q18 sql-q20
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The tests start hundreds of interpreters, and mypy and ruff remember what they have seen.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-spark test test-all test-spark test-flink tests tests-wide fuzz docs docs-serve pictures test-versions explore findings simulate nodes mutants lint format types contracts compatibility rest-routes bench clean

help:            ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ \t/' | expand -t 16

$(INSTALLED): pyproject.toml
	@echo "setting up $(VENV) with flinkpy and what it needs (once, less than a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "flinkpy needs Python 3.10 or newer; set PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) -e .
	@touch $(INSTALLED)

$(READY): $(INSTALLED)
	@echo "adding what developers need to $(VENV) (once, about a minute)"
	@$(PIP_INSTALL) -e '.[dev]'
	@touch $(READY)

$(SPARK_READY): $(READY)
	@echo "adding Spark and a Java to $(VENV) (once, a few minutes: 400 MB)"
	@$(PIP_INSTALL) -e '.[dev,spark]'
	@touch $(SPARK_READY)

$(DOCS_READY): $(READY)
	@echo "adding what builds the site to $(VENV) (once, half a minute)"
	@$(PIP_INSTALL) -e '.[dev,docs]'
	@touch $(DOCS_READY)

demo: $(INSTALLED)  ## the main job on real data: delays of US flights per carrier and airport
	@$(BIN)/flinkpy run -p 2 examples/flight_delays.py
	@echo
	@echo "To see such jobs in the browser: start a session on Ray, open the address that it prints, and run the example there:"
	@echo "    $(BIN)/flinkpy session start demo -D rest.enabled=true"
	@echo "    $(BIN)/flinkpy run -t ray-session -D cluster.id=demo -p 2 examples/flight_delays.py"
	@echo "    $(BIN)/flinkpy session stop demo"

demo-spark: $(SPARK_READY)  ## Spark to a stream and back: hours disrupted beyond what the weather explains; brings its own Java
	@$(BIN)/python examples/spark_to_stream.py --output build/disruption

test: lint types contracts tests  ## before a commit, six minutes: style, types, import contracts, a test of each promise

test-all: test tests-wide  ## what CI runs: also the wide tests, and the property tests on all their examples

tests: $(READY)  ## the tests of `make test`, alone
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest $(PARALLEL) -m 'not wide and not spark'

tests-wide: $(READY)  ## what `make test` leaves out: long tests, every form of a thing, the property tests on all their examples
	$(BIN)/pytest $(PARALLEL) -m '(wide or hypothesis) and not spark'

test-spark: $(SPARK_READY)  ## the tests that start Spark
	$(BIN)/pytest tests/findings tests/spark tests/examples -m spark

test-flink: $(READY) ## Flink's own command line and page against our REST (brings Flink's jars once: 320 MB; needs a Java)
	@test -d build/flink/pyflink/lib || $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --target build/flink apache-flink-libraries==2.3.0
	FLINK_LIB=build/flink/pyflink/lib $(BIN)/pytest tests/web/test_flinks_command_line.py tests/web/test_flinks_page.py

fuzz: $(READY) ## 10,000 odd requests to the REST endpoint, a minute (the tests send 1,000)
	FUZZ_REQUESTS=10000 $(BIN)/pytest -s --timeout 900 tests/web/test_fuzz.py

docs: $(DOCS_READY)  ## the site, in build/site: every warning is an error, and search must find every public name
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	$(BIN)/pytest -q tests/site/built_site.py

docs-serve: $(DOCS_READY) ## the site at a local address, built anew as pages change
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --no-strict

pictures: $(READY)  ## the pictures of the tutorial, taken anew in a browser, into docs/pictures
	PICTURES=docs/pictures $(BIN)/pytest tests/web/page/test_pictures.py

test-versions:   ## the tests that need no Ray, on every Python from 3.10 on that this machine has
	@$(PYTHON) -m tests.versions

explore: $(READY) ## the property tests on new random examples, ten times as many
	HYPOTHESIS_PROFILE=explore $(BIN)/pytest $(PARALLEL) -m 'not ray and not spark' --timeout 1800

findings: $(READY) ## every program that a review found wrong, and whether it is right (those on Ray: make test-all, on Spark: make test-spark)
	$(BIN)/python -m pytest -q -p tests.findings.report -m 'finding and not ray and not spark'

simulate: $(READY) ## the simulated cluster: 2,000 seeds of its control plane, 2,000 of real programs and 200 of queries over changes, some ten minutes (SEEDS=500: fewer)
	$(BIN)/python -m flinkpy.testing.simulation --seeds 0:$(SEEDS) -j 2
	$(BIN)/python -m flinkpy.testing.simulation --programs --seeds 0:$(SEEDS) -j 2
	$(BIN)/python -m flinkpy.testing.simulation --programs $(CHANGING) --seeds 0:$$(($(SEEDS) / 10)) -j 2

nodes: $(READY)  ## a Ray cluster of three nodes on this machine: placement, TCP, a node that dies
	$(BIN)/pytest -q -m ray tests/cluster/test_several_nodes.py

mutants: $(READY) ## breaks each rule that matters, and says which tests notice
	$(BIN)/python -m tests.mutants

lint: $(READY)   ## style
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet || { echo "make format does it"; exit 1; }

format: $(READY) ## lays every file out: lines of 100
	$(BIN)/ruff check --fix --quiet
	$(BIN)/ruff format --quiet

types: $(READY)  ## static types
	$(BIN)/mypy

contracts: $(READY)  ## who may import whom
	$(BIN)/lint-imports

rest-routes: $(READY) ## in docs/rest.md, which of Flink's REST routes are not there
	$(BIN)/python -m tests.web.told_routes

compatibility: $(READY) ## docs/pyflink-compatibility.md, from calling every name
	$(BIN)/python -m tests.compatibility.page

bench: $(READY)  ## the benchmarks, each with its ratio to a bare loop
	$(BIN)/python -m benchmarks

clean:           ## forgets the set-up and all caches
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
