"""Values that remember how they were made, and what is asked of them afterwards: their gradients.

In: Tensors that were made differentiable leaves, and values computed from them. Out: gradients, as arrays or as values
that remember in turn. Called by Tensor's methods `backward`, `register_hook` and others, and by the doors
`nbgrad.autograd` and `nbgrad.tape`, which differ in names, defaults and errors only.
"""
