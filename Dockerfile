# The image of every pod of a topology: masters, managers, instances, and the helm chart's test.
#
#   make image                             builds ardea:VERSION with buildah or docker
#   make image BASE=NAME@DIGEST            on a Debian with Python that nobody can change
#   make image EXTRAS="cli drpc spark"     with other extras of pyproject.toml; spark brings Debian's Java
#   make image EXTRAS=                     the engine alone: no command line, no console, no DRPC
#   FROM ardea:VERSION                     is how an author adds packages and code (docs/kubernetes.md)
#
# What is installed are the versions that requirements-engine.txt says, and for the extras requirements-extras.txt.
# Wheels only, for no stage has a compiler; but for PySpark, which has no wheel and is Python alone.  The layer of the
# dependencies stays as long as these files and pyproject.toml do.

ARG BASE=python:3.11-slim
ARG EXTRAS="cli console drpc"

FROM $BASE AS dependencies
ARG EXTRAS
COPY pyproject.toml requirements-engine.txt requirements-extras.txt scripts/requirements.py /build/
RUN python -m venv /opt/ardea \
 && pip="/opt/ardea/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --only-binary :all:" \
 && $pip --no-deps -r /build/requirements-engine.txt \
 && python /build/requirements.py /build/pyproject.toml $EXTRAS > /build/extras.txt \
 && $pip --no-binary pyspark -c /build/requirements-engine.txt -c /build/requirements-extras.txt -r /build/extras.txt

FROM dependencies AS code
RUN /opt/ardea/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --only-binary :all: "hatchling>=1.27"
WORKDIR /build
COPY . .
RUN pip="/opt/ardea/bin/pip --quiet --no-cache-dir --disable-pip-version-check" \
 && $pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
 && $pip install --no-deps --root /staged --prefix /opt/ardea /wheel/*.whl

FROM $BASE
LABEL org.opencontainers.image.title="ardea" \
      org.opencontainers.image.description="A topology engine for Python: Storm's model, Heron's architecture" \
      org.opencontainers.image.licenses="Apache-2.0"
ARG EXTRAS
RUN case " $EXTRAS " in *" spark "*) \
    mkdir -p /usr/share/man/man1 \
 && apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null \
 && rm -rf /var/lib/apt/lists/* ;; \
    esac
# With `spark.master: k8s://...` Spark starts its executors in pods of this image, by this word.
RUN printf '#!/bin/sh\nexec /opt/ardea/bin/python -P -m ardea.spark.executor\n' > /usr/local/bin/executor \
 && chmod 755 /usr/local/bin/executor
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin ardea
COPY --from=dependencies /opt/ardea /opt/ardea
COPY --from=code /staged/opt/ardea /opt/ardea
ENV PATH=/opt/ardea/bin:$PATH HOME=/home/ardea PYTHONUNBUFFERED=1
ARG BASE
LABEL org.opencontainers.image.base.name="$BASE"
USER 10001:10001
WORKDIR /home/ardea
CMD ["ardea", "--help"]
