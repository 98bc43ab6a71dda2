"""Models of transformers that see or hear: what their media must be like, and what takes the place of tokens."""
