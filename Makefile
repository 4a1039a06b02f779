# `make demo` and `make test` each work alone on a machine with Python 3.11 or newer and make.
PYTHON ?= python3
VENV := $(CURDIR)/.venv
export PATH := $(VENV)/bin:$(PATH)
SHELL := /bin/sh

.PHONY: demo test lint install clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("smoothctl needs Python 3.11 or newer; say which with: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(VENV)/installed
	smoothctl train --method gaussian --arch resnet20 --dataset digits --sigma 0.25 --epochs 20 --out runs/teacher
	smoothctl transfer --teacher runs/teacher --student lenet --epochs 40 --out runs/student
	smoothctl certify runs/teacher --n0 100 --n 10000 --alpha 0.001 --every 9
	smoothctl certify runs/student --n0 100 --n 10000 --alpha 0.001 --every 9
	smoothctl predict runs/student docs/examples/seven.png
	smoothctl report runs/teacher runs/student --plot runs/curves.png
	smoothctl report runs/teacher runs/student --cost

lint: $(VENV)/installed
	ruff format --check .
	ruff check .
	lint-imports
	mypy

test: lint
	OMP_NUM_THREADS=1 pytest -n 2

clean:
	rm -rf $(VENV) runs build *.egg-info
