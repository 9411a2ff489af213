"""Recording: Tensors, the nodes behind them, and the memory that they share; nothing here computes."""
