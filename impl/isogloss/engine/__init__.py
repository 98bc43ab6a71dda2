"""Engines: what handlers ask (`api`), the seam inside (`tokens`), and those that stand behind it."""
