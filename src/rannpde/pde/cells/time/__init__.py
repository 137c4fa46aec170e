"""Time integration with cells in space."""
