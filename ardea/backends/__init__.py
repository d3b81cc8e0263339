"""Where the state of a component is kept while it runs (docs/snapshots.md)."""
