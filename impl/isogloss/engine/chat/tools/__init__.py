"""One file per way of writing calls."""
