"""Every error of a document."""
