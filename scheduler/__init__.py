"""Packing, and the schedulers that start what was packed."""
