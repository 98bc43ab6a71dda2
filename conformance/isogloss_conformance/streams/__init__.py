"""What holds of answers that come in events."""
