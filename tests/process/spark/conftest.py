"""What takes a minute and most of the machine runs in ``make soak`` only."""

from tests.process.engine.running import SOAK

collect_ignore = [] if SOAK else ["test_yarn.py"]
