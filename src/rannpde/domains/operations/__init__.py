"""Boolean operations and motions: unions, intersections, differences, moved domains, and what they take in space."""
