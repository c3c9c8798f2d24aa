"""Benchmarks, runnable by anyone: ratios side by side in one run."""
