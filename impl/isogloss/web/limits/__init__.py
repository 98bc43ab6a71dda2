"""The server's promises about load and access, one class each."""
