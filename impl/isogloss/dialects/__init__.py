"""Translate: generated request models into engine requests, engine events into generated response shapes."""
