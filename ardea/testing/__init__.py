"""A topology in one process, on simulated time."""
