"""The PINNacle cases: statements, goals, published figures and the classical solver beside each."""
