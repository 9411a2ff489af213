"""Recording: Tensors, what they are made of, how they share memory; nothing here computes."""
