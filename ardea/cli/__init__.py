"""The ``ardea`` command (docs/cli.md)."""
