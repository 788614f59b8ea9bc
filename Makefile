# make help                      this list
# make demo                      train examples/jax-digits on this machine, no Kubernetes needed
# make demo EXAMPLE=torch-digits the same with torchrun and DistributedDataParallel
# make demo EXAMPLE=fine-tune-tiny   fetch data and model, fine-tune with LoRA, export
# make dashboard                 a dev cluster with three trainings, and the page that shows them; Ctrl-C ends all of it
# make test                      unit tests         make e2e     real processes, real kubectl, real training
# make lane-dashboard            both of a part that the rest does without: dashboard, devcluster, initializers, release, sweeps, v1_jobs
# make lanes                     those of these lanes that changes since the last `make nightly` can have broken
# make nightly                   everything: all frameworks, SDKs, images, attacks, a soak; 200 minutes
# make e2e KUBECONFIG=FILE       all end-to-end tests on the cluster of this file: see e2e/README.md
# make ci                        what a change must pass, on Debian as root; make ci TARGETS=nightly: another target there
# make kind-cluster              Kubernetes with JobSet and Kueue, in Docker; make kind-e2e: all end-to-end tests on it
# make release REGISTRY=ghcr.io/OWNER REPOSITORY=https://github.com/OWNER/NAME   all that is published, in dist
# make publish-images REGISTRY=ghcr.io/OWNER   what `make images` has built, then publish-chart, sign: see docs/releases.md
# make check                     lint, types, layers, workflows   make bench   numbers, next to kopf and kubernetes_asyncio
# make soak SOAK_MINUTES=10      trainings come and go, and nothing of what serves them may grow
# make compat                    the tests on Python 3.12, 3.13 and 3.14, with the oldest and the newest dependencies; an hour
# make bench-converge KUBECONFIG=FILE    the manager on that cluster, next to a bare process: see benchmarks/README.md
# make docs                      the documentation as a site, build/site/index.html, with all links checked
# make dashboard-bundle          the web page of `trainer dashboard`, into the package
# make audit                     known vulnerabilities of what we install
# make images                    all images as OCI archives in build/images, without a daemon; BASE=debian without a registry
# make image                     that of the manager; also image-initializer and image-transformers
# make e2e-images                starts those in build/images, and tests what they do
# make requirements              versions and hashes of what the images install, from pyproject.toml and constraints.txt
PYTHON ?= python3
EXAMPLE ?= jax-digits
BENCH ?=
TARGETS ?=
# The version of Kubernetes of `make kind-cluster`.
KUBERNETES ?= 1.37
SOAK_MINUTES ?= 10
SOAK ?=
# What is built and released, and where it lies.
IMAGES ?= build/images
DIST ?= dist
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' trainer/__init__.py)
VENV := .venv
BIN := $(VENV)/bin
# The web page, and what is built from it.
WEB := packages/dashboard/web
STATIC := packages/dashboard/src/trainer_dashboard/static
# The distributions beside trainer-operator.
PACKAGES := $(patsubst %/pyproject.toml,%,$(wildcard packages/*/pyproject.toml))
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
FRAMEWORK = $(shell echo "$(EXAMPLE)" | sed "s,-[^-]*$$,,")
FRAMEWORKS := fine-tune jax keras lightning mlx mpi paddle tensorflow torch torchtune transformers xgboost
LANES := dashboard devcluster initializers release sweeps v1_jobs
comma := ,
space := $() $()

# Images of Python set it, and then every process of the tests compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

COMBINATIONS := 3.12 3.13 3.14 oldest newest

.PHONY: help demo dashboard example-exists test e2e lanes $(LANES:%=lane-%) nightly soak check docs format clean ci
.PHONY: bench bench-smoke bench-initializers bench-admission bench-build bench-converge bench-dashboard bench-growth
.PHONY: bench-history bench-devcluster bench-progress bench-survival bench-sweeps
.PHONY: dashboard-bundle dashboard-check e2e-dashboard pictures audit workflows-check
.PHONY: kind-cluster kind-e2e kind-logs kind-delete
.PHONY: e2e-images image images image-initializer image-transformers requirements join-images publish-images
.PHONY: release release-tag pack-chart registry-login publish-chart provenance-subjects sign sign-sums release-page
.PHONY: compat $(COMBINATIONS:%=compat-%)
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# \(make .*\)/\1/p' $(firstword $(MAKEFILE_LIST))

demo: example-exists $(VENV)/.demo-$(FRAMEWORK)
	@exec $(BIN)/trainer demo examples/$(EXAMPLE)/trainjob.yaml

example-exists:
	@test -f examples/$(EXAMPLE)/train.py || \
	  { echo "error: EXAMPLE=$(EXAMPLE): there is no example of this name that runs on this machine; choose one of:" $$(cd examples && ls */train.py | xargs dirname) >&2; exit 2; }

# In a state directory of its own, so that it leaves the cluster of `trainer up` alone. The shell has to outlive Ctrl-C,
# which the terminal sends to all of them, to end what runs in the background.
SHOWN := jax-digits keras-digits xgboost-digits
dashboard: $(foreach example,$(SHOWN),$(VENV)/.demo-$(word 1,$(subst -, ,$(example))))
	@set -e; export XDG_STATE_HOME=$$(mktemp -d); unset KUBECONFIG; \
	trap '$(BIN)/trainer down --delete; rm -rf "$$XDG_STATE_HOME"' EXIT; trap 'exit 0' INT TERM; \
	$(BIN)/trainer up; \
	for example in $(SHOWN); do $(BIN)/trainer run --no-follow -f examples/$$example/trainjob.yaml; done; \
	$(BIN)/trainer dashboard

# Three workers keep two cores busy: many tests wait for processes that they have started.
PYTEST := $(BIN)/pytest -n 3
SELECT = $(BIN)/python -m hack.lanes

test: $(VENV)/.dev
	$(PYTEST) $$($(SELECT) unit core)

e2e: $(VENV)/.dev $(VENV)/.demo-jax $(VENV)/.demo-torch
	$(E2E)

# Each file has the cluster of its worker, and test_rbac.py looks back at all.
define E2E
@set -e; E2E_RUN=$$(mktemp -d); export E2E_RUN; trap 'rm -r "$$E2E_RUN"' EXIT; set -x; \
$(E2E_PYTEST) $$($(SELECT) e2e core) --ignore e2e/test_rbac.py; \
$(BIN)/pytest e2e/test_rbac.py
endef
E2E_PYTEST := $(PYTEST) --dist loadfile --no-loadscope-reorder

# Only when it is given here: a variable of the environment is no wish to test on the cluster that it names.
ifeq ($(origin KUBECONFIG),command line)
e2e: export E2E_KUBECONFIG := $(abspath $(KUBECONFIG))
e2e: $(VENV)/.frameworks $(VENV)/.mpich $(VENV)/.sdk $(VENV)/.tf-keras $(VENV)/.training-sdk
E2E = $(BIN)/pytest e2e --ignore e2e/dashboard
CONVERGE_ON = --kubeconfig $(abspath $(KUBECONFIG))
endif

lanes: $(VENV)/.dev
	@set -e; lanes=$$($(SELECT)); for lane in $$lanes; do $(MAKE) lane-$$lane; done

lane-dashboard: $(VENV)/.dev $(VENV)/.dashboard-tests packages/dashboard/web/node_modules/.package-lock.json
lane-devcluster: $(VENV)/.dev
lane-initializers: $(VENV)/.dev $(VENV)/.s3-server $(VENV)/.azurite $(VENV)/.demo-fine-tune
lane-release: $(VENV)/.dev
lane-sweeps: $(VENV)/.dev $(VENV)/.demo-torch
lane-v1_jobs: $(VENV)/.dev $(VENV)/.demo-jax $(VENV)/.demo-torch

# Browsers have the machine for themselves.
$(LANES:%=lane-%): lane-%:
	$(PYTEST) $$($(SELECT) unit $*)
	$(E2E_PYTEST) $(if $(filter dashboard,$*),-n 0) $$($(SELECT) e2e $*)

# Tests of failures have the machine for themselves, and the last test looks back at all: hence two parts.
nightly: check dashboard-check $(VENV)/.frameworks $(VENV)/.mpich $(VENV)/.s3-server $(VENV)/.azurite $(VENV)/.sdk $(VENV)/.tf-keras $(VENV)/.training-sdk $(VENV)/.dashboard-tests
	SOAK_SEEDS=20 $(PYTEST)
	@set -e; E2E_RUN=$$(mktemp -d); export E2E_RUN; trap 'rm -r "$$E2E_RUN"' EXIT; set -x; \
	$(E2E_PYTEST) e2e --ignore e2e/dashboard --ignore e2e/failures --ignore e2e/test_rbac.py; \
	$(BIN)/pytest e2e/failures e2e/test_rbac.py
	$(BIN)/pytest e2e/dashboard
	$(MAKE) bench-smoke
	@if git diff --quiet HEAD; then git rev-parse HEAD >.ci/verified; else echo "note: .ci/verified stays: there are changes that are not committed" >&2; fi
	$(MAKE) compat
	$(MAKE) soak SOAK_MINUTES=60

# It has the machine for itself: two idle cores are enough for two trainings a second.
soak: $(VENV)/.dev
	$(BIN)/python -m benchmarks.soak --minutes $(SOAK_MINUTES) $(SOAK)

# A Python that is neither on PATH nor in pyenv is one of Debian, on a clean machine, which only root can make.
compat: $(VENV)/.dev
	$(BIN)/python -m hack.compatibility $(COMBINATIONS)

$(COMBINATIONS:%=compat-%): compat-%: $(VENV)/.dev
	$(BIN)/python -m hack.compatibility $*

# That they run, with sizes that say nothing.
bench-smoke: $(VENV)/.dev
	@set -e; output=$$(mktemp -d); trap 'rm -r "$$output"' EXIT; set -x; \
	$(BIN)/python -m benchmarks --objects 50 --peer-objects 20 --seconds 0.2 --output "$$output/results.json"; \
	$(BIN)/python -m benchmarks.admission --reviews 20 --output "$$output/admission.json"; \
	$(BIN)/python -m benchmarks.build --jobs 5 --output "$$output/build.json"; \
	$(BIN)/python -m benchmarks.converge --jobs 20 --output "$$output/converge.json"; \
	$(BIN)/python -m benchmarks.devcluster_scale --jobs 10; \
	$(BIN)/python -m benchmarks.growth --jobs 10 --more 5 --output "$$output/growth.json"; \
	$(BIN)/python -m benchmarks.history --rows 1000 --jobs 10 --ticks 2; \
	$(BIN)/python -m benchmarks.progress --jobs 10 --seconds 2 --output "$$output/progress.json"; \
	$(BIN)/python -m benchmarks.survival --seconds 25 --every 8 --start 0.5 --step 0.1 --interval 2; \
	$(BIN)/python -m benchmarks.sweeps --seeds 1 --trials 12 --calls 2

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(BENCH)

bench-progress: $(VENV)/.dev
	$(BIN)/python -m benchmarks.progress $(BENCH)

# Ten minutes: a training that is evicted every half a minute.
bench-survival: $(VENV)/.dev
	$(BIN)/python -m benchmarks.survival $(BENCH)

# With the Gaussian process, which needs torch: BENCH=--gp.
bench-sweeps: $(VENV)/.dev
	$(BIN)/python -m benchmarks.sweeps $(BENCH)

bench-admission: $(VENV)/.dev
	$(BIN)/python -m benchmarks.admission $(BENCH)

bench-build: $(VENV)/.dev
	$(BIN)/python -m benchmarks.build $(BENCH)

bench-initializers: $(VENV)/.dev $(VENV)/.s3-server
	$(BIN)/python -m benchmarks.initializers $(BENCH)

bench-converge: $(VENV)/.dev
	$(BIN)/python -m benchmarks.converge $(CONVERGE_ON) $(BENCH)

bench-dashboard: $(VENV)/.dev $(VENV)/.dashboard-tests
	$(BIN)/python -m benchmarks.dashboard $(BENCH)

bench-growth: $(VENV)/.dev
	$(BIN)/python -m benchmarks.growth $(BENCH)

bench-history: $(VENV)/.dev
	$(BIN)/python -m benchmarks.history $(BENCH)

bench-devcluster: $(VENV)/.dev
	$(BIN)/python -m benchmarks.devcluster_scale $(BENCH)
	$(BIN)/python -m benchmarks.devcluster_watchers

check: $(VENV)/.dev workflows-check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	@set -e; for package in $(PACKAGES); do $(BIN)/lint-imports --no-logo --no-cache --config $$package/pyproject.toml; done

# actionlint reads what is between the lines of a workflow, zizmor what an attacker could do with it.
workflows-check: $(VENV)/.dev
	@if test -x $(BIN)/actionlint; then \
	  set -ex; $(BIN)/actionlint -shellcheck $(BIN)/shellcheck; $(BIN)/shellcheck .ci/run; \
	  $(BIN)/zizmor --offline --no-progress --quiet .github; \
	else echo "note: actionlint and zizmor come for Linux on x86-64 only; the workflows are not checked" >&2; fi

ci:
	bash .ci/run $(TARGETS)

kind-cluster: $(VENV)/.dev
	$(BIN)/python -m hack.kind_cluster create --kubernetes $(KUBERNETES)

kind-e2e: $(VENV)/.dev
	$(BIN)/python -m hack.kind_cluster e2e

kind-logs: $(VENV)/.dev
	$(BIN)/python -m hack.kind_cluster logs

kind-delete: $(VENV)/.dev
	$(BIN)/python -m hack.kind_cluster delete

# IMAGES has what `make images` has built, or join-images has joined; where there is nothing, two images are built, on BASE.
# IMAGES=none leaves images, their digests and bills of materials out.
release: $(VENV)/.dev
	@test "$(IMAGES)" = none || test -e "$(IMAGES)/images.json" || \
	  $(MAKE) images NAMES="manager initializer" || \
	  { echo "error: no images; BASE=debian builds them without a registry, IMAGES=none leaves them out" >&2; exit 2; }
	$(BIN)/python -m hack.release build $(REGISTRY:%=--registry "%") $(REPOSITORY:%=--repository "%") \
	  $(if $(filter none,$(IMAGES)),,--images "$(IMAGES)") --output "$(DIST)"

release-tag: | $(BIN)/python
	$(BIN)/python -m hack.release.tag "$$TAG"

# Each step can be repeated. IMAGES has images, in a folder for each platform, and DIST is what `make release` has made; the
# steps after join-images and pack-chart need Python's standard library alone.
PUBLISHED := build/published.json
PUBLISH = REGISTRY=$(REGISTRY) $(BIN)/python -m hack.publish

join-images registry-login publish-images publish-chart provenance-subjects sign sign-sums release-page: | $(BIN)/python
join-images:
	$(PUBLISH) join "$(IMAGES)"

pack-chart: $(VENV)/.dev
	$(BIN)/python -m hack.publish.chart $(DIST)/kubeflow-trainer-$(VERSION).tgz build/chart

registry-login:
	$(PUBLISH) login

publish-images:
	$(PUBLISH) push $(PUBLISHED) "$(IMAGES)"

publish-chart:
	$(PUBLISH) push $(PUBLISHED) build/chart

provenance-subjects:
	@mkdir -p build
	$(PUBLISH) subjects $(PUBLISHED) >build/subjects

sign:
	$(PUBLISH) sign $(PUBLISHED) $(DIST)

sign-sums:
	$(PUBLISH) sums $(DIST)

release-page:
	$(PUBLISH) page "$$TAG" $(DIST)

docs: $(VENV)/.docs
	$(BIN)/python -m hack.site

dashboard-bundle: $(WEB)/node_modules/.package-lock.json
	cd $(WEB) && npm run --silent build

# That the bundle in the package is the one that is built from this source.
dashboard-check: $(WEB)/node_modules/.package-lock.json
	cd $(WEB) && npm run --silent check && npm run --silent test
	@set -e; built=$$(mktemp -d); trap 'rm -r "$$built"' EXIT; set -x; \
	(cd $(WEB) && npm run --silent build -- --logLevel warn --outDir "$$built"); \
	diff -r "$$built" $(STATIC) || \
	  { echo "error: $(STATIC) is not built from $(WEB) as it is: make dashboard-bundle" >&2; exit 1; }

pictures: $(VENV)/.dev $(VENV)/.dashboard-tests $(VENV)/.demo-torch
	$(BIN)/python -m hack.pictures

e2e-dashboard: $(VENV)/.dev $(VENV)/.dashboard-tests $(WEB)/node_modules/.package-lock.json
	$(BIN)/pytest e2e/dashboard

audit: $(VENV)/.audit
	$(BIN)/python -m hack.audit

# Archives, and images.json with their digests: skopeo, podman load, docker load and crane read them.
BASE ?=
NAMES ?=
BUILD_IMAGES = $(BIN)/python -m hack.images --output "$(IMAGES)" --tag $(VERSION) $(BASE:%=--base %)

images: | $(BIN)/python
	$(BUILD_IMAGES) $(NAMES)

# Starts those of them that IMAGES lists, whatever they are built on.
e2e-images: $(VENV)/.dev
	E2E_IMAGES="$(IMAGES)" $(BIN)/pytest $(addprefix e2e/images/test_,initializer.py manager.py release.py servers.py)

image: | $(BIN)/python
	$(BUILD_IMAGES) manager

image-initializer: | $(BIN)/python
	$(BUILD_IMAGES) initializer

image-transformers: | $(BIN)/python
	$(BUILD_IMAGES) transformers

requirements: $(VENV)/.requirements
	$(BIN)/python -m hack.generate_requirements

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is not there, or older than 3.11; name another: make PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.dev: pyproject.toml $(PACKAGES:%=%/pyproject.toml) constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --editable '.[cluster,dev]' $(PACKAGES:%=--editable %)
	@touch $@

# In a directory of its own: mpirun in $(BIN) would hide that of Open MPI.
$(VENV)/.mpich: constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --ignore-installed --prefix $(VENV)/mpich mpich
	@touch $@

# In a directory of its own, and without what it needs: it names tensorflow, and tensorflow-cpu is what is installed.
$(VENV)/.tf-keras: constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --no-deps --target $(VENV)/tf-keras --upgrade tf-keras
	@touch $@

# In a directory of its own: it pins an older client of Kubernetes.
$(VENV)/.sdk: e2e/sdk_requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(VENV)/sdk --upgrade \
	  --requirement e2e/sdk_requirements.txt
	@touch $@

$(VENV)/.training-sdk: e2e/training_sdk_requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(VENV)/training-sdk --upgrade \
	  --requirement e2e/training_sdk_requirements.txt
	@touch $@

# In a directory of its own: botocore needs an older python-dateutil than the client of Kubernetes.
$(VENV)/.s3-server: packages/initializers/tests/s3_requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(VENV)/s3-server --upgrade \
	  --requirement packages/initializers/tests/s3_requirements.txt
	@touch $@

# Azurite, of npm; the tests that need it are skipped where there is no Node.
$(VENV)/.azurite: packages/initializers/tests/azurite/package-lock.json | $(BIN)/python
	@if command -v npm >/dev/null; then \
	  set -ex; mkdir -p $(VENV)/azurite; cp packages/initializers/tests/azurite/package*.json $(VENV)/azurite; \
	  npm ci --prefix $(VENV)/azurite --silent --no-audit --no-fund --ignore-scripts; touch $@; \
	else echo "note: npm is not installed; the tests of az:// are skipped" >&2; fi

$(VENV)/.audit: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --editable '.[audit]'
	@touch $@

$(VENV)/.demo-fine-tune: | $(VENV)/.s3-server

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --editable '.[docs]'
	@touch $@

$(VENV)/.requirements: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --editable '.[requirements]'
	@touch $@

$(VENV)/.dashboard-tests: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --editable '.[dashboard-tests]'
	@touch $@

$(WEB)/node_modules/.package-lock.json: $(WEB)/package.json $(WEB)/package-lock.json
	@if command -v npm >/dev/null; then set -x; (cd $(WEB) && npm ci --silent) && touch $@; \
	else echo "note: npm is not installed; the tests of accessibility are skipped" >&2; fi

# Not quiet: it is the first that somebody sees of this project, and takes a minute or more.
$(VENV)/.demo-%: pyproject.toml $(PACKAGES:%=%/pyproject.toml) constraints.txt | $(BIN)/python
	@echo "Installing trainer with the extra examples-$* into $(VENV): with JAX 1.1 GB and about two minutes, else more."
	$(filter-out --quiet,$(PIP_INSTALL)) --editable '.[cluster,examples-$*]' $(PACKAGES:%=--editable %)
	@touch $@

# All at once: pip resolves, and builds what is editable, once instead of for each.
$(VENV)/.frameworks: pyproject.toml $(PACKAGES:%=%/pyproject.toml) constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --editable '.[cluster,$(subst $(space),$(comma),$(FRAMEWORKS:%=examples-%))]' $(PACKAGES:%=--editable %)
	@touch $(FRAMEWORKS:%=$(VENV)/.demo-%) $@
