"""The functions that users call on Tensors and arrays, one file per family."""
