"""Making librdkafka's clients out of ``kafka.*`` settings, and saying what they report.

confluent-kafka is an extra (``ardea[kafka]``), imported where a task first uses it.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ardea.client_settings import client_settings
from ardea.errors import ConfigError

PREFIX = "kafka."
SERVERS = "bootstrap.servers"
QUIET = 10.0
NONE: Mapping[str, Any] = MappingProxyType({})
CONSUMER = {
    "isolation.level": "read_committed",
    "queued.max.messages.kbytes": 16384,
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 10,  # a full queue is read empty in a fraction of librdkafka's second
}
"""What a spout's client is given, unless ``kafka.*`` says otherwise."""
PRODUCER = {
    "linger.ms": 5,
    "queue.buffering.max.kbytes": 32768,
    "topic.metadata.propagation.max.ms": 5000,  # after librdkafka's 30 s a tuple has timed out: nobody would say why
}
"""What whoever writes is given, unless ``kafka.*`` says otherwise."""
FIXED = {
    "group.id": "give KafkaSpout a group=",
    "enable.auto.commit": "offsets are committed when their tuples are acked",
    "enable.auto.offset.store": "offsets are committed when their tuples are acked",
    "enable.partition.eof": "the end of a bounded spout depends on it",
    "auto.offset.reset": "give start= and deleted=",
    "transactional.id": "it is the state's name and partition",
}


def kafka() -> Any:
    """The client library.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError as error:
        raise ConfigError("confluent-kafka is not installed", hint="pip install 'ardea[kafka]'") from error


def kafka_admin() -> Any:
    """Its part for administrators."""
    kafka()
    return importlib.import_module("confluent_kafka.admin")


def properties(config: Mapping[str, Any]) -> dict[str, Any]:
    """The client's properties that a configuration has.

    Raises:
        ConfigError: no broker is named, a property is Ardea's to set, or a secret cannot be read.
    """
    found = client_settings(config, PREFIX, FIXED)
    if not found.get(SERVERS):
        raise ConfigError(f"{PREFIX}{SERVERS} is not set", hint=f"For example --set {PREFIX}{SERVERS}=localhost:9092")
    return found


class Quiet:
    """Says a thing once, and the same thing again when ten seconds are over."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float]) -> None:
        self._logger, self._clock = logger, clock
        self._said: dict[Any, tuple[float, int]] = {}

    def say(self, level: int, kind: Any, message: str) -> None:
        """``kind`` is what makes it the same; how often it was not said is added."""
        now = self._clock()
        last, held = self._said.get(kind, (-QUIET, 0))
        if now - last < QUIET:
            self._said[kind] = (last, held + 1)
            return
        self._said[kind] = (now, 0)
        self._logger.log(level, "%s%s", message, f" ({held} more since the last such line)" if held else "")


class Connection:
    """Who we are to Kafka, and what it has to say to us."""

    def __init__(self, settings: Mapping[str, Any], logger: logging.Logger, clock: Callable[[], float]) -> None:
        self.settings = dict(settings)
        self.logger, self.clock = logger, clock
        self.quiet = Quiet(logger, clock)
        self._lib = kafka()
        self._errors: list[Any] = []
        codes = self._lib.KafkaError
        self._refusals = {
            codes._AUTHENTICATION,
            codes.SASL_AUTHENTICATION_FAILED,
            codes.TOPIC_AUTHORIZATION_FAILED,
            codes.GROUP_AUTHORIZATION_FAILED,
            codes.CLUSTER_AUTHORIZATION_FAILED,
            codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        }

    @property
    def servers(self) -> str:
        """The brokers that we were told of."""
        return str(self.settings[SERVERS])

    @property
    def troubled(self) -> bool:
        """Whether the clients have reported something since the last check."""
        return bool(self._errors)

    def open(self, kind: str, defaults: Mapping[str, Any] = NONE, fixed: Mapping[str, Any] = NONE) -> Any:
        """A ``Consumer``, ``Producer`` or ``AdminClient`` with these settings, over ``defaults`` and below ``fixed``.

        Raises:
            ConfigError: librdkafka does not take a property.
        """
        module = kafka_admin() if kind == "AdminClient" else self._lib
        # The client's own log says each refused connection several times; what it reports to us is said once.
        settings = {"log_level": 2, **defaults, **self.settings, **fixed, "error_cb": self._errors.append}
        try:
            return getattr(module, kind)(settings, logger=self.logger)
        except self._lib.KafkaException as error:
            raise ConfigError(f"Kafka's client refuses the {PREFIX}* settings: {error.args[0].str()}") from None
        except (TypeError, ValueError) as error:  # of what is not librdkafka's, but Python's: callbacks
            raise ConfigError(f"Kafka's client refuses the {PREFIX}* settings: {error}") from None

    def check(self) -> None:
        """Says what the clients have reported since the last call.

        Raises:
            ConfigError: somebody has to change the settings or the permissions.
        """
        errors, self._errors[:] = self._errors.copy(), []
        for error in errors:
            self.refuse(error)
            self.quiet.say(logging.WARNING, error.code(), f"Kafka at {self.servers}: {error.str()}")

    def refuse(self, error: Any) -> None:
        """Raises ConfigError if trying again is of no use."""
        if error.code() in self._refusals:
            who = self.settings.get("sasl.username", "an unnamed user")
            how = self.settings.get("sasl.mechanism", self.settings.get("sasl.mechanisms", "none"))
            raise ConfigError(
                f"Kafka refuses {who} at {self.servers} (mechanism {how}): {error.str()}",
                hint=f"Check {PREFIX}sasl.*, {PREFIX}security.protocol and the permissions; then submit again.",
            )

    def silence(self, error: Any) -> None:
        """Says that nobody answered."""
        self.quiet.say(logging.ERROR, "silence", f"no broker of {self.servers} answers: {error}; goes on when one does")
