"""Pure functions on exact integers: conversions between (ε, δ) and zCDP."""
