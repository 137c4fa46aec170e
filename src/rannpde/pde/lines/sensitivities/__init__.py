"""How a march responds to unknown numbers and functions."""
