# The image of every pod of a topology: masters, managers, instances, and the helm chart's test.
#
#   make image                             builds ardea:dev with buildah or docker
#   FROM ardea:dev                         is how an author adds packages and code (docs/kubernetes.md)
#
# Wheels only: no stage has a compiler.  The layer of the dependencies stays as long as pyproject.toml does.

FROM python:3.11-slim AS dependencies
ARG EXTRAS="kubernetes zookeeper"
COPY pyproject.toml scripts/requirements.py /build/
RUN python -m venv /opt/ardea \
 && python /build/requirements.py /build/pyproject.toml $EXTRAS > /build/requirements.txt \
 && /opt/ardea/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --only-binary :all: \
    -r /build/requirements.txt

FROM dependencies AS code
RUN /opt/ardea/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --only-binary :all: "hatchling>=1.27"
WORKDIR /build
COPY . .
RUN /opt/ardea/bin/pip install --quiet --no-cache-dir --no-deps --no-build-isolation --root /staged --prefix /opt/ardea .

FROM python:3.11-slim
LABEL org.opencontainers.image.title="ardea" \
      org.opencontainers.image.description="A topology engine for Python: Storm's model, Heron's architecture" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin ardea
COPY --from=dependencies /opt/ardea /opt/ardea
COPY --from=code /staged/opt/ardea /opt/ardea
ENV PATH=/opt/ardea/bin:$PATH HOME=/home/ardea PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /home/ardea
CMD ["ardea", "--help"]
