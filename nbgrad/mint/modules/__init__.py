"""PyTorch's modules, optimizers that step by themselves, and what training scripts use around them.

In: PyTorch's calls. Out: Cells with PyTorch's methods, and what trains them. Called through `nbgrad.mint.torch_names`,
whose `nn`, `optim`, `utils` and `distributions` these modules are.
"""
