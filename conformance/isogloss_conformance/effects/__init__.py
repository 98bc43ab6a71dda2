"""What accepted fields do."""
