"""Studies: sweeps as data, records that survive, figures and the report.

Data flows one way, and so do the imports: ``study``, ``target``, ``layer`` (what to do) ← ``run`` (do it, keep it) ←
``show`` (slopes, figures, the report) ← ``paper`` (its chapters) ← ``toml`` (a study from a file), ``reproduce`` (all
of it). Nothing is imported here, so that a command loads only what it needs.
"""
