"""Results that several kinds share, and how their coefficients are written and drawn."""
