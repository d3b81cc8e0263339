"""The `ardea` command."""
