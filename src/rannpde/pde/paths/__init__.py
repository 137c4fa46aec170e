"""High dimensions: semilinear parabolic equations and optimal stopping by regression along simulated paths."""
