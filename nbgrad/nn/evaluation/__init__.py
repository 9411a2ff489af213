"""Metrics, with MindSpore's names: sums over batches of a dataset."""
