"""Guides that hold an answer to calls of functions, each in its family's form and by its function's schema."""
