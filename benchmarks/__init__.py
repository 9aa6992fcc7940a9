"""Speed and accuracy, against peers; each module prints one JSON line last."""
