# Everything runs in .venv, made on first use. The stamp is remade when the dependencies change.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test quick check format bench clean

demo: $(STAMP)  ## bid for a wind farm on embedded data
	OMP_NUM_THREADS=1 $(BIN)/costscape demo

test: check  ## everything that must hold: format, lint, types, layers, tests, doctests, examples
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

quick: $(STAMP)  ## the tests that take seconds
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

check: $(STAMP)  ## format, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## speed, as ratios in one run
	$(BIN)/python benchmarks/bench_step.py
	$(BIN)/python benchmarks/bench_decide.py adam cvxpy
	$(BIN)/python benchmarks/bench_wind.py
	$(BIN)/python benchmarks/bench_vaccine.py
	$(BIN)/python benchmarks/bench_scaling.py --plot
	$(BIN)/python benchmarks/bench_import.py
	$(BIN)/python benchmarks/bench_epoch.py

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

clean:
	rm -rf .venv out build dist
