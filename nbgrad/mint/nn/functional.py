"""MindSpore's `mint.nn.functional`: functions of neural networks with PyTorch's names, parameters and defaults.

In: Tensors. Out: Tensors. Used by users. `TABLE` lists every name by the module that holds it.
"""

from __future__ import annotations

from ..named_modules import door

TABLE = {
    "nbgrad.ops": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "conv_transpose2d cosine_embedding_loss cosine_similarity cross_entropy fold gelu grid_sample "
        "group_norm hardshrink hardsigmoid hardswish l1_loss layer_norm linear=dense logsigmoid "
        "margin_ranking_loss max_unpool2d mish mse_loss normalize pixel_shuffle prelu scaled_dot_product_attention "
        "selu sigmoid soft_margin_loss softplus softshrink tanh unfold"
    ),
    "nbgrad.mint.nn.functional_rows": (
        "avg_pool1d avg_pool2d avg_pool3d batch_norm binary_cross_entropy binary_cross_entropy_with_logits conv1d "
        "conv2d conv3d dropout dropout2d elu elu_ embedding glu hardtanh hardtanh_ interpolate kl_div leaky_relu "
        "log_softmax max_pool2d nll_loss one_hot pad relu relu6 relu_ sigmoid_ silu smooth_l1_loss softmax threshold "
        "threshold_ upsample"
    ),
    "nbgrad.mint.own_parameters": "flatten",
}
"""Module -> names; `name=function` has another name there."""

__getattr__, __dir__ = door(__name__, TABLE, globals())
