"""One line a record on stdout, which the supervisor writes to the process' own file."""

from __future__ import annotations

import logging
import sys


def configure(level: int = logging.INFO) -> None:
    """The stdlib's logging: time, level, logger, message."""
    logging.basicConfig(
        level=level,
        stream=sys.stdout,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )


def configure_structured(level: int = logging.INFO) -> None:
    """The same lines for structlog's loggers, with key=value behind the event.

    Apart from :func:`configure` because structlog loads rich, which instances do without.
    """
    import structlog

    configure(level)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["event"], drop_missing=True),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
