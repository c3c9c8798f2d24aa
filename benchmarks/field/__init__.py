"""The field: other people's algorithms, test populations and measures for ``benchmarks/accuracy.py``."""
