"""Passes over the text of LLVM IR, which LLVM has no pass for, and the definitions that they put in."""
