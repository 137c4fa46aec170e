"""The field's public benchmarks: problems that others have published figures for, solved, judged and shown."""
