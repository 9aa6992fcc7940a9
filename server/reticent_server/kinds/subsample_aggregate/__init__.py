"""Models fitted to secret random blocks, and averaged."""
