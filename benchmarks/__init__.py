"""Benchmarks: ratios of two ways side by side in one run, never absolute times. One file is one benchmark."""
