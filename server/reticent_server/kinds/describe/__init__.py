"""Table 1 and histograms: every column, by group, in one charge."""
