"""The language of equations: text → syntax tree → SymPy → residuals with their exact linearisation."""
