"""What lies in the store of snapshots: files of state, manifests, the folder that holds them (docs/snapshots.md)."""
