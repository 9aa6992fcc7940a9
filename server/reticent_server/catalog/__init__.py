"""Public metadata: schemas, versions, populations, policies and released profiles."""
