"""Unknown numbers and functions from measurements, with intervals."""
