"""Statements of derivatives in a better form: shorter, in another order of turns, and on several threads."""
