"""The metrics manager: one /metrics for a container, and further sinks."""
