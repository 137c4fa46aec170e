"""Other libraries beside ours, on the same problems, each in a process and, if wanted, a Python of its own."""
