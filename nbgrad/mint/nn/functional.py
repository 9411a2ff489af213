"""MindSpore's `mint.nn.functional`: functions of neural networks with PyTorch's names, parameters and defaults.

In: Tensors. Out: Tensors. Used by users. `TABLE` lists every name by the module that holds it.
"""

from __future__ import annotations

from ..named_modules import door

TABLE = {
    "nbgrad.ops": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d affine_grid channel_shuffle conv_transpose2d conv_transpose3d cosine_embedding_loss "
        "cosine_similarity cross_entropy fold fractional_max_pool2d fractional_max_pool3d gaussian_nll_loss gelu "
        "grid_sample group_norm hardshrink huber_loss l1_loss layer_norm linear=dense logsigmoid lp_pool1d lp_pool2d "
        "margin_ranking_loss max_unpool1d max_unpool2d max_unpool3d mse_loss multi_margin_loss multilabel_margin_loss "
        "multilabel_soft_margin_loss normalize pdist pixel_shuffle pixel_unshuffle prelu sigmoid soft_margin_loss "
        "softplus softshrink softsign tanh tanhshrink triplet_margin_loss unfold"
    ),
    "nbgrad.mint.nn.functional_rows": (
        "avg_pool1d avg_pool2d avg_pool3d batch_norm binary_cross_entropy binary_cross_entropy_with_logits conv1d "
        "conv2d conv3d dropout dropout2d elu elu_ embedding glu hardtanh hardtanh_ interpolate kl_div log_softmax "
        "max_pool2d nll_loss one_hot pad relu relu6 relu_ sigmoid_ silu smooth_l1_loss softmax threshold threshold_ "
        "upsample"
    ),
    "nbgrad.mint.nn.functions_of_torch": (
        "alpha_dropout bilinear celu celu_ conv_transpose1d ctc_loss dropout1d dropout3d embedding_bag "
        "feature_alpha_dropout gumbel_softmax hardsigmoid hardswish hinge_embedding_loss instance_norm leaky_relu "
        "leaky_relu_ local_response_norm max_pool1d max_pool3d mish pairwise_distance poisson_nll_loss rms_norm rrelu "
        "scaled_dot_product_attention selu selu_ softmin triplet_margin_with_distance_loss"
    ),
    "nbgrad.mint.own_parameters": "flatten",
}
"""Module -> names; `name=function` has another name there."""

__getattr__, __dir__ = door(__name__, TABLE, globals())
