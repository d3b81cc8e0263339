"""Measures whole topologies on this machine; docs/benchmarks.md says how, and what each number means."""
