"""What a document accepts and refuses."""
