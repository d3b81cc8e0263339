"""The topology master: admits containers, makes the physical plan, decides the end."""
