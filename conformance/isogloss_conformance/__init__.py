"""The suite: proves of any server whether it speaks a dialect."""
