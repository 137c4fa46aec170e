"""Studies: sweeps as data, records that survive, figures and the report.

Data flows one way: ``study`` (what to do) → ``runner`` and ``cell`` (do it) → ``records`` (keep it) → ``analysis``
(slopes) → ``figures``, ``report`` (show it); ``reproduce`` goes through all of it. One file a study of the paper:
``porous_medium``, ``navier_stokes``, ``limits``, ``compact_set``, ``weight_laws``, ``scale_penalty``, ``dimension``,
listed in ``catalogue``. Nothing is imported here, so that a command loads only what it needs.
"""
