"""Time integration: Butcher tableaux, step-size control, Radau IIA, ETDRK4, trajectories with dense output."""
