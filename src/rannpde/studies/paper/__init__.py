"""The studies of the paper and those its readers asked for, one chapter a file, listed in ``catalogue``."""
