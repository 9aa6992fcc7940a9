"""What fits share: public rows, whitening, steps, covariance, identifiability, forecasts."""
