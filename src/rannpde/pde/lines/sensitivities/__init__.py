"""Forward sensitivities of the method of lines to unknown numbers and functions."""
