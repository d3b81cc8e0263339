"""The instance: one task, a gateway thread and an executor thread."""
