# The image of the controller manager; `make image` builds it.
#
# The base is named by a tag, so that a build today has Debian's fixes of today. For the same image bit by bit, name it by
# its digest (--build-arg BASE=docker.io/library/python@sha256:...), give SOURCE_DATE_EPOCH, and have BuildKit put that
# time on all files of its layers (--output type=image,name=...,rewrite-timestamp=true): all the rest is fixed.
# 3.11 is the oldest Python that is supported, and the one that all tests run with; a test runs the build stage as it is
# written here and starts the manager from what it makes.
ARG BASE=docker.io/library/python:3.11-slim-trixie

FROM ${BASE} AS build
ARG SOURCE_DATE_EPOCH=1767225600
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PYTHONHASHSEED=0 \
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH}
WORKDIR /source

# What is installed comes as wheels, of the versions that the tests run with: nothing is compiled, and no setup script
# runs. A layer of its own, which a change of our code leaves alone.
COPY pyproject.toml constraints.txt ./
COPY packages/dashboard/pyproject.toml packages/dashboard/
COPY packages/sweeps/pyproject.toml packages/sweeps/
COPY packages/v1_jobs/pyproject.toml packages/v1_jobs/
RUN python -m pip install --quiet --only-binary=:all: --constraint constraints.txt hatchling
RUN python -m venv --without-pip /opt/trainer
# One image for all that runs in a cluster: the manager, the dashboard and the recorder. Of 234 MB of packages 71 are NumPy:
# Optuna needs it, and the manager imports both when the first sweep chooses parameters.
RUN python -c "import pathlib, tomllib; files = [*pathlib.Path().rglob('pyproject.toml')]; \
      named = [each for file in files for each in tomllib.loads(file.read_text())['project']['dependencies']]; \
      print(*(each for each in named if not each.startswith('trainer-')), sep='\n')" \
      >requirements.txt && \
    python -m pip --python /opt/trainer/bin/python install --quiet --no-compile --only-binary=:all: \
      --constraint constraints.txt --requirement requirements.txt

COPY README.md LICENSE ./
COPY config config
COPY trainer trainer
COPY packages/dashboard packages/dashboard
COPY packages/sweeps packages/sweeps
COPY packages/v1_jobs packages/v1_jobs
RUN python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels \
      . ./packages/dashboard ./packages/sweeps ./packages/v1_jobs
RUN python -m pip --python /opt/trainer/bin/python install --quiet --no-compile --no-deps --no-index /wheels/*.whl && \
    python -m pip --python /opt/trainer/bin/python check
# The root file system is read-only, so byte code is made here; it refers to its source by content, not by time.
RUN /opt/trainer/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/trainer/lib && \
    find /opt/trainer -depth -exec touch --no-dereference --date="@${SOURCE_DATE_EPOCH}" {} +

FROM ${BASE}
ARG BASE
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="trainer-operator" \
      org.opencontainers.image.description="The Kubeflow Trainer V2 control plane in Python" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE}"
# Nothing in a running manager installs software or becomes another user.
RUN rm -rf /usr/local/lib/python3.*/site-packages/* /usr/local/lib/python3.*/ensurepip \
      /usr/local/bin/pip* /usr/local/bin/wheel && \
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +
COPY --from=build /opt/trainer /opt/trainer
# Plugins go to /plugins. HEALTH_ADDRESS is for HEALTHCHECK alone, where configurations say something else than the
# default; Kubernetes has probes of its own.
ENV PATH=/opt/trainer/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/plugins \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HEALTH_ADDRESS=127.0.0.1:8081
# A number, so that Kubernetes can see that it is not root; any other will do as well.
USER 65532:65532
WORKDIR /
EXPOSE 8081 8443 9443
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import http.client, os, sys; c = http.client.HTTPConnection(os.environ['HEALTH_ADDRESS'], timeout=4); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["trainer"]
CMD ["manager"]
