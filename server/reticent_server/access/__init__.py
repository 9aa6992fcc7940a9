"""Who may ask: analysts, curators, their keys, and grants to data sets."""
