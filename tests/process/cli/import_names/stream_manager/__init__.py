"""Where one can cross."""
