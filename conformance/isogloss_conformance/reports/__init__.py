"""What a run found, written down, read and shown."""
