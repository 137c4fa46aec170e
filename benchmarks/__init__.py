"""Benchmarks, run from the root of the repository: the public table, other libraries, ratios. No part of the wheel."""
