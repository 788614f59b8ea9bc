# The image of the controller manager; `make image` builds it without a daemon, and so does `docker build .` with one.
#
# The base is named by a tag, so that a build today has Debian's fixes of today. For the same image bit by bit, name it by
# its digest (BASE=docker.io/library/python@sha256:...): all the rest is fixed. `make image` puts the time of the commit on
# all files; Docker does so with SOURCE_DATE_EPOCH and --output type=image,name=...,rewrite-timestamp=true.
# BASE needs python3 3.11 or newer. BUILD_BASE needs the same Python with venv, and is BASE unless that has none.
# 3.11 is the oldest Python that is supported, and the one that all tests run with.
ARG BASE=docker.io/library/python:3.11-slim-trixie
ARG BUILD_BASE=${BASE}

FROM ${BUILD_BASE} AS build
ARG SOURCE_DATE_EPOCH=1767225600
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PYTHONHASHSEED=0 \
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH}
WORKDIR /source

# What is installed comes as wheels, of the versions that the tests run with and with the hashes of their files: nothing is
# compiled, and no setup script runs. A layer of its own, which a change of our code leaves alone.
COPY images/build-requirements.txt images/
COPY images/manager/requirements.txt images/manager/
RUN python3 -m venv /builder && \
    /builder/bin/python -m pip install --quiet --only-binary=:all: --require-hashes \
      --requirement images/build-requirements.txt
# One image for all that runs in a cluster: the manager, the dashboard and the recorder. Of 234 MB of packages 71 are NumPy:
# Optuna needs it, and the manager imports both when the first sweep chooses parameters.
RUN python3 -m venv --without-pip /opt/trainer && \
    /builder/bin/python -m pip --python /opt/trainer/bin/python install --quiet --no-compile --only-binary=:all: \
      --require-hashes --requirement images/manager/requirements.txt && \
    find /opt/trainer/lib/python3.*/site-packages -type d \( -name tests -o -name include \) -prune -exec rm -r {} +

COPY pyproject.toml README.md LICENSE ./
COPY config config
COPY trainer trainer
COPY packages/dashboard packages/dashboard
COPY packages/sweeps packages/sweeps
COPY packages/v1_jobs packages/v1_jobs
RUN /builder/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels \
      . ./packages/dashboard ./packages/sweeps ./packages/v1_jobs
RUN /builder/bin/python -m pip --python /opt/trainer/bin/python install --quiet --no-compile --no-deps --no-index \
      /wheels/*.whl && \
    /builder/bin/python -m pip --python /opt/trainer/bin/python check
# The root file system is read-only, so byte code is made here, also where importing has left some (-f: pip imports attrs); it
# refers to its source by content, not by time. Each package has a process of its own, since byte code depends on what the
# process that writes it has compiled before.
RUN find /opt/trainer/lib/python3.*/site-packages -mindepth 1 -maxdepth 1 \( -type d -o -name "*.py" \) -print0 | \
      xargs -0 -n 1 -P "$(nproc)" /opt/trainer/bin/python -m compileall -q -f --invalidation-mode unchecked-hash && \
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
