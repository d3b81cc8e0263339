"""What the supervisor is made of: its orders, its decisions, its records (docs/supervisor.md)."""
