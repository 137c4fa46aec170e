"""The parts of a benchmark: cases, runs in processes of their own, records, verdicts, pages."""
