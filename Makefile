# `make demo` and `make test` each work alone on a machine with Python 3.11 or newer and make.
PYTHON ?= python3
VENV := $(CURDIR)/.venv
export PATH := $(VENV)/bin:$(PATH)
SHELL := /bin/sh

.PHONY: demo test lint install docs wheel clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("smoothctl needs Python 3.11 or newer; say which with: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --editable '.[dev]'
	touch $@

# A robust teacher is expensive; a student learns from it at the cost of ordinary training; the same network trained
# directly shows what that saved.
demo: $(VENV)/installed
	smoothctl train --method smoothmix --arch lenet --dataset digits --sigma 0.25 --epochs 20 --out runs/teacher
	smoothctl transfer --teacher runs/teacher --student resnet20 --epochs 10 --out runs/student
	smoothctl train --method smoothmix --arch resnet20 --dataset digits --sigma 0.25 --epochs 10 --out runs/direct
	smoothctl certify runs/teacher --n 10000 --alpha 0.001 --every 12
	smoothctl certify runs/student --n 10000 --alpha 0.001 --every 12
	smoothctl certify runs/direct --n 10000 --alpha 0.001 --every 12
	smoothctl predict runs/student docs/examples/seven.png
	smoothctl report runs/teacher runs/student runs/direct --plot runs/curves.png
	smoothctl report runs/student runs/direct --cost --baseline runs/direct

lint: $(VENV)/installed
	ruff format --check .
	ruff check .
	lint-imports
	mypy

test: lint
	OMP_NUM_THREADS=1 pytest -n 2

# The documentation as a site, in build/site.
docs: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 mkdocs build --quiet

# What is published, in dist.
wheel: $(VENV)/installed
	python -m build --outdir dist

clean:
	rm -rf $(VENV) runs build dist *.egg-info
