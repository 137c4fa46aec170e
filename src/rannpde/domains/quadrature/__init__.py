"""Integrals over domains and sides with error estimates, and Gauss rules on plane sets with curved boundaries."""
