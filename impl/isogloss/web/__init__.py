"""HTTP: routing, limits, judging and answering. Knows the documents and their handlers, and no engine."""
