"""Topologies on Kubernetes: their objects, the keeper beside the acting master, and the verbs (docs/kubernetes.md)."""
