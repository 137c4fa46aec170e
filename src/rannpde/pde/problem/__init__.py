"""Problems: equations and conditions on a domain, checked, restricted, kept in files; whether they evolve in time."""
