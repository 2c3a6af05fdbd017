# Everything runs in .venv, made on first use. The stamp is remade when the dependencies change.
PYTHON ?= python3
BIN := .venv/bin
# hundreds of processes import the same modules: they are compiled once, also where the shell forbids it
export PYTHONDONTWRITEBYTECODE :=
STAMP := .venv/.installed
# three workers for two cores: tests that wait for processes of their own leave a core idle
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
# the parts below the methods are tested with every shape checked, which takes half as long again,
# the solvers by the tests that all of them share; all other tests run without these checks
SHAPES := --jaxtyping-packages=costscape,beartype.beartype
PARTS := $(addprefix tests/,checks data models risk sets training \
  solvers/test_every_solver.py methods/test_df2_loss.py test_arrays.py test_block_bootstrap.py \
  test_context.py test_evaluation.py test_scenarios.py test_task.py)

.PHONY: demo test shapes long quick check format docs docs-serve bench bench-serve bench-gpu trust versions audit clean

demo: $(STAMP)  ## order stock on embedded data
	OMP_NUM_THREADS=1 $(BIN)/costscape demo

test: $(STAMP)  ## everything that must hold: format, lint, types, layers, tests, doctests, examples, the site
	$(MAKE) -j2 check shapes
	$(PYTEST) -m "not long" $(PARTS:%=--ignore=%)

shapes: $(STAMP)  ## the tests that check every shape
	$(PYTEST) $(SHAPES) $(PARTS)

long: $(STAMP)  ## the tests that `make test` leaves out for their time
	$(PYTEST) -m long

quick: $(STAMP)  ## the tests that take seconds
	$(PYTEST) -m "not slow and not long" $(SHAPES) $(PARTS)
	$(PYTEST) -m "not slow and not long" $(PARTS:%=--ignore=%)

check: $(STAMP)  ## format, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)  ## the site, into out/site; tutorials run if they or the library have changed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: docs  ## the site at http://localhost:8000
	$(BIN)/python -m http.server --directory out/site --bind localhost 8000

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## speed against its goals and against rivals, on one thread
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/run.py --cpu

bench-serve: $(STAMP)  ## the service: requests a second, latency, memory, bad requests, a new model
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/bench_serve.py

trust: $(STAMP)  ## bad inputs, random problems, units, kills: the long form, tens of minutes
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/trust/run.py

versions: $(STAMP)  ## tests with the oldest and newest versions of torch, numpy and others; needs an index of packages
	$(BIN)/python benchmarks/trust/versions.py

bench-gpu: $(STAMP)  ## the same on a GPU
	$(BIN)/python benchmarks/run.py --gpu

audit: $(STAMP)  ## known vulnerabilities of the installed packages; needs the network
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[audit]'
	$(BIN)/python benchmarks/trust/audit.py

# pip compiles modules on one core; templates among them are no Python and stay as they are
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -W ignore -m compileall -qq -j 0 -x /tests/ .venv/lib || true
	touch $(STAMP)

clean:
	rm -rf .venv out build dist
