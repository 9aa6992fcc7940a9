"""What several rooms share."""
