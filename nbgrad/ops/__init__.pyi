"""Written by `python -m tests.stubs --write`."""

from .elementwise import add as add
from .elementwise import sub as sub
from .elementwise import subtract as subtract
from .elementwise import mul as mul
from .elementwise import multiply as multiply
from .elementwise import div as div
from .elementwise import divide as divide
from .elementwise import true_divide as true_divide
from .elementwise import floor_div as floor_div
from .elementwise import floor_divide as floor_divide
from .elementwise import floor_mod as floor_mod
from .elementwise import mod as mod
from .elementwise import remainder as remainder
from .elementwise import fmod as fmod
from .elementwise import truncate_div as truncate_div
from .elementwise import truncate_mod as truncate_mod
from .elementwise import pow as pow
from .elementwise import exp as exp
from .elementwise import exp2 as exp2
from .elementwise import expm1 as expm1
from .elementwise import log as log
from .elementwise import log2 as log2
from .elementwise import log10 as log10
from .elementwise import log1p as log1p
from .elementwise import sqrt as sqrt
from .elementwise import rsqrt as rsqrt
from .elementwise import square as square
from .elementwise import reciprocal as reciprocal
from .elementwise import inv as inv
from .elementwise import abs as abs
from .elementwise import absolute as absolute
from .elementwise import neg as neg
from .elementwise import negative as negative
from .elementwise import positive as positive
from .elementwise import sign as sign
from .elementwise import sin as sin
from .elementwise import cos as cos
from .elementwise import tan as tan
from .elementwise import asin as asin
from .elementwise import acos as acos
from .elementwise import atan as atan
from .elementwise import atan2 as atan2
from .elementwise import arcsin as arcsin
from .elementwise import arccos as arccos
from .elementwise import arctan as arctan
from .elementwise import arctan2 as arctan2
from .elementwise import sinh as sinh
from .elementwise import cosh as cosh
from .elementwise import tanh as tanh
from .elementwise import asinh as asinh
from .elementwise import acosh as acosh
from .elementwise import atanh as atanh
from .elementwise import arcsinh as arcsinh
from .elementwise import arccosh as arccosh
from .elementwise import arctanh as arctanh
from .elementwise import floor as floor
from .elementwise import ceil as ceil
from .elementwise import round as round
from .elementwise import trunc as trunc
from .elementwise import fix as fix
from .elementwise import frac as frac
from .elementwise import maximum as maximum
from .elementwise import minimum as minimum
from .elementwise import fmax as fmax
from .elementwise import fmin as fmin
from .elementwise import clamp as clamp
from .elementwise import clip as clip
from .elementwise import clip_by_value as clip_by_value
from .elementwise import where as where
from .elementwise import select as select
from .elementwise import masked_fill as masked_fill
from .elementwise import isnan as isnan
from .elementwise import isinf as isinf
from .elementwise import isfinite as isfinite
from .elementwise import equal as equal
from .elementwise import eq as eq
from .elementwise import ne as ne
from .elementwise import not_equal as not_equal
from .elementwise import less as less
from .elementwise import lt as lt
from .elementwise import le as le
from .elementwise import less_equal as less_equal
from .elementwise import greater as greater
from .elementwise import gt as gt
from .elementwise import ge as ge
from .elementwise import greater_equal as greater_equal
from .elementwise import logical_and as logical_and
from .elementwise import logical_or as logical_or
from .elementwise import logical_xor as logical_xor
from .elementwise import logical_not as logical_not
from .elementwise import bitwise_and as bitwise_and
from .elementwise import bitwise_or as bitwise_or
from .elementwise import bitwise_xor as bitwise_xor
from .elementwise import bitwise_left_shift as bitwise_left_shift
from .elementwise import bitwise_right_shift as bitwise_right_shift
from .elementwise import lerp as lerp
from .elementwise import addcmul as addcmul
from .elementwise import addcdiv as addcdiv
from .elementwise import addn as addn
from .elementwise import hypot as hypot
from .elementwise import logaddexp as logaddexp
from .elementwise import logaddexp2 as logaddexp2
from .elementwise import heaviside as heaviside
from .elementwise import nan_to_num as nan_to_num
from .elementwise import xlogy as xlogy
from .elementwise import rad2deg as rad2deg
from .elementwise import deg2rad as deg2rad
from .elementwise import sinc as sinc
from .elementwise import cast as cast
from .elementwise import isclose as isclose
from .elementwise import allclose as allclose
from .elementwise import copysign as copysign
from .elementwise import nextafter as nextafter
from .elementwise import signbit as signbit
from .elementwise import is_tensor as is_tensor
from .elementwise import depend as depend
from .reduction_functions import sum as sum
from .reduction_functions import mean as mean
from .reduction_functions import prod as prod
from .reduction_functions import amax as amax
from .reduction_functions import amin as amin
from .reduction_functions import max as max
from .reduction_functions import min as min
from .reduction_functions import argmax as argmax
from .reduction_functions import argmin as argmin
from .reduction_functions import aminmax as aminmax
from .reduction_functions import std as std
from .reduction_functions import var as var
from .reduction_functions import std_mean as std_mean
from .reduction_functions import var_mean as var_mean
from .reduction_functions import norm as norm
from .reduction_functions import vector_norm as vector_norm
from .reduction_functions import matrix_norm as matrix_norm
from .reduction_functions import clip_by_global_norm as clip_by_global_norm
from .reduction_functions import logsumexp as logsumexp
from .reduction_functions import cumsum as cumsum
from .reduction_functions import cumprod as cumprod
from .reduction_functions import cummax as cummax
from .reduction_functions import cummin as cummin
from .reduction_functions import trapz as trapz
from .reduction_functions import all as all
from .reduction_functions import any as any
from .reduction_functions import median as median
from .reduction_functions import count_nonzero as count_nonzero
from .reduction_functions import nansum as nansum
from .reduction_functions import nanmean as nanmean
from .reduction_functions import reduce_sum as reduce_sum
from .reduction_functions import reduce_mean as reduce_mean
from .reduction_functions import reduce_max as reduce_max
from .reduction_functions import reduce_min as reduce_min
from .reduction_functions import reduce_prod as reduce_prod
from .reduction_functions import reduce_all as reduce_all
from .reduction_functions import reduce_any as reduce_any
from .shape_functions import reshape as reshape
from .shape_functions import transpose as transpose
from .shape_functions import permute as permute
from .shape_functions import swapaxes as swapaxes
from .shape_functions import swapdims as swapdims
from .shape_functions import moveaxis as moveaxis
from .shape_functions import movedim as movedim
from .shape_functions import expand_dims as expand_dims
from .shape_functions import unsqueeze as unsqueeze
from .shape_functions import squeeze as squeeze
from .shape_functions import broadcast_to as broadcast_to
from .shape_functions import expand as expand
from .shape_functions import expand_as as expand_as
from .shape_functions import concat as concat
from .shape_functions import cat as cat
from .shape_functions import stack as stack
from .shape_functions import hstack as hstack
from .shape_functions import vstack as vstack
from .shape_functions import dstack as dstack
from .shape_functions import column_stack as column_stack
from .shape_functions import split as split
from .shape_functions import tensor_split as tensor_split
from .shape_functions import chunk as chunk
from .shape_functions import hsplit as hsplit
from .shape_functions import vsplit as vsplit
from .shape_functions import dsplit as dsplit
from .shape_functions import unstack as unstack
from .shape_functions import unbind as unbind
from .shape_functions import tile as tile
from .shape_functions import repeat_interleave as repeat_interleave
from .shape_functions import repeat_elements as repeat_elements
from .shape_functions import flatten as flatten
from .shape_functions import ravel as ravel
from .shape_functions import flip as flip
from .shape_functions import fliplr as fliplr
from .shape_functions import flipud as flipud
from .shape_functions import roll as roll
from .shape_functions import rot90 as rot90
from .shape_functions import meshgrid as meshgrid
from .shape_functions import atleast_1d as atleast_1d
from .shape_functions import atleast_2d as atleast_2d
from .shape_functions import atleast_3d as atleast_3d
from .shape_functions import triu as triu
from .shape_functions import tril as tril
from .shape_functions import diag as diag
from .shape_functions import diagonal as diagonal
from .shape_functions import narrow as narrow
from .shape_functions import shape as shape
from .shape_functions import size as size
from .shape_functions import rank as rank
from .shape_functions import numel as numel
from .shape_functions import pad as pad
from .shape_functions import diff as diff
from .gathering import gather as gather
from .gathering import gather_elements as gather_elements
from .gathering import gather_d as gather_d
from .gathering import gather_nd as gather_nd
from .gathering import scatter_nd as scatter_nd
from .gathering import scatter as scatter
from .gathering import tensor_scatter_elements as tensor_scatter_elements
from .gathering import tensor_scatter_add as tensor_scatter_add
from .gathering import tensor_scatter_sub as tensor_scatter_sub
from .gathering import tensor_scatter_update as tensor_scatter_update
from .gathering import index_select as index_select
from .gathering import index_add as index_add
from .gathering import index_fill as index_fill
from .gathering import masked_select as masked_select
from .gathering import one_hot as one_hot
from .gathering import nonzero as nonzero
from .gathering import argwhere as argwhere
from .gathering import slice as slice
from .gathering import strided_slice as strided_slice
from .gathering import bincount as bincount
from .gathering import searchsorted as searchsorted
from .ranking import sort as sort
from .ranking import argsort as argsort
from .ranking import topk as topk
from .ranking import unique as unique
from .filled_arrays import zeros as zeros
from .filled_arrays import ones as ones
from .filled_arrays import full as full
from .filled_arrays import zeros_like as zeros_like
from .filled_arrays import ones_like as ones_like
from .filled_arrays import full_like as full_like
from .filled_arrays import arange as arange
from .filled_arrays import linspace as linspace
from .filled_arrays import logspace as logspace
from .filled_arrays import eye as eye
from .filled_arrays import range as range
from .filled_arrays import fill as fill
from .linear_algebra import matmul as matmul
from .linear_algebra import bmm as bmm
from .linear_algebra import mm as mm
from .linear_algebra import mv as mv
from .linear_algebra import dot as dot
from .linear_algebra import inner as inner
from .linear_algebra import outer as outer
from .linear_algebra import ger as ger
from .linear_algebra import einsum as einsum
from .linear_algebra import tensor_dot as tensor_dot
from .linear_algebra import addmm as addmm
from .linear_algebra import addbmm as addbmm
from .linear_algebra import baddbmm as baddbmm
from .linear_algebra import addmv as addmv
from .linear_algebra import addr as addr
from .linear_algebra import cross as cross
from .linear_algebra import kron as kron
from .linear_algebra import trace as trace
from .linear_algebra import matrix_power as matrix_power
from .linear_algebra import cdist as cdist
from .activations import relu as relu
from .activations import relu6 as relu6
from .activations import leaky_relu as leaky_relu
from .activations import elu as elu
from .activations import celu as celu
from .activations import selu as selu
from .activations import gelu as gelu
from .activations import silu as silu
from .activations import sigmoid as sigmoid
from .activations import hardsigmoid as hardsigmoid
from .activations import hardswish as hardswish
from .activations import hardtanh as hardtanh
from .activations import hardshrink as hardshrink
from .activations import softshrink as softshrink
from .activations import mish as mish
from .activations import softplus as softplus
from .activations import softsign as softsign
from .activations import tanhshrink as tanhshrink
from .activations import logsigmoid as logsigmoid
from .activations import prelu as prelu
from .activations import softmax as softmax
from .activations import log_softmax as log_softmax
from .activations import softmin as softmin
from .activations import glu as glu
from .attention import scaled_dot_product_attention as scaled_dot_product_attention
from .normalisation import layer_norm as layer_norm
from .normalisation import layer_norm_from as layer_norm_from
from .normalisation import group_norm as group_norm
from .normalisation import batch_norm as batch_norm
from .normalisation import batch_norm_training as batch_norm_training
from .normalisation import instance_norm as instance_norm
from .normalisation import lrn as lrn
from .normalisation import normalize as normalize
from .normalisation import rms_norm as rms_norm
from .losses import mse_loss as mse_loss
from .losses import l1_loss as l1_loss
from .losses import smooth_l1_loss as smooth_l1_loss
from .losses import huber_loss as huber_loss
from .losses import cross_entropy as cross_entropy
from .losses import nll_loss as nll_loss
from .losses import binary_cross_entropy as binary_cross_entropy
from .losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .losses import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from .losses import kl_div as kl_div
from .losses import cosine_embedding_loss as cosine_embedding_loss
from .losses import margin_ranking_loss as margin_ranking_loss
from .losses import cosine_similarity as cosine_similarity
from .convolution import conv1d as conv1d
from .convolution import conv2d as conv2d
from .convolution import conv_transpose2d as conv_transpose2d
from .convolution import unfold as unfold
from .convolution import fold as fold
from .pooling import max_pool1d as max_pool1d
from .pooling import max_pool2d as max_pool2d
from .pooling import avg_pool1d as avg_pool1d
from .pooling import avg_pool2d as avg_pool2d
from .pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from .pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from .pooling import adaptive_max_pool2d as adaptive_max_pool2d
from .pooling import interpolate as interpolate
from .random_tensors import rand as rand
from .random_tensors import randn as randn
from .random_tensors import rand_like as rand_like
from .random_tensors import randn_like as randn_like
from .random_tensors import uniform as uniform
from .random_tensors import normal as normal
from .random_tensors import standard_normal as standard_normal
from .random_tensors import laplace as laplace
from .random_tensors import standard_laplace as standard_laplace
from .random_tensors import randint as randint
from .random_tensors import randint_like as randint_like
from .random_tensors import randperm as randperm
from .random_tensors import shuffle as shuffle
from .random_tensors import dropout as dropout
from .random_tensors import dropout1d as dropout1d
from .random_tensors import dropout2d as dropout2d
from .random_tensors import dropout3d as dropout3d
from .choices import bernoulli as bernoulli
from .choices import multinomial as multinomial
from .choices import gumbel_softmax as gumbel_softmax
from .linear_systems import det as det
from .linear_systems import matrix_determinant as matrix_determinant
from .linear_systems import slogdet as slogdet
from .linear_systems import log_matrix_determinant as log_matrix_determinant
from .linear_systems import inverse as inverse
from .linear_systems import cholesky as cholesky
from .linear_systems import cholesky_solve as cholesky_solve
from .linear_systems import cholesky_inverse as cholesky_inverse
from .linear_systems import matrix_solve as matrix_solve
from .decompositions import svd as svd
from .decompositions import qr as qr
from .decompositions import eig as eig
from .decompositions import eigvals as eigvals
from .decompositions import pinv as pinv
from .decompositions import matrix_exp as matrix_exp
from .decompositions import cond as cond
from .decompositions import logdet as logdet
from .decompositions import orgqr as orgqr
from .decompositions import ormqr as ormqr
from .decompositions import block_diag as block_diag
from .decompositions import toeplitz as toeplitz
from .spectra import fft as fft
from .spectra import ifft as ifft
from .spectra import fft2 as fft2
from .spectra import ifft2 as ifft2
from .spectra import fftn as fftn
from .spectra import ifftn as ifftn
from .spectra import rfft as rfft
from .spectra import irfft as irfft
from .spectra import rfft2 as rfft2
from .spectra import irfft2 as irfft2
from .spectra import rfftn as rfftn
from .spectra import irfftn as irfftn
from .spectra import hfft as hfft
from .spectra import ihfft as ihfft
from .spectra import hfft2 as hfft2
from .spectra import ihfft2 as ihfft2
from .spectra import hfftn as hfftn
from .spectra import ihfftn as ihfftn
from .spectra import fftshift as fftshift
from .spectra import ifftshift as ifftshift
from .spectra import fftfreq as fftfreq
from .spectra import rfftfreq as rfftfreq
from .complex_values import real as real
from .complex_values import imag as imag
from .complex_values import conj as conj
from .complex_values import angle as angle
from .complex_values import is_complex as is_complex
from .complex_values import isreal as isreal
from .complex_values import complex as complex
from .complex_values import polar as polar
from .complex_values import view_as_real as view_as_real
from .complex_values import view_as_complex as view_as_complex
from .complex_values import complex_abs as complex_abs
from .parameters import assign as assign
from .parameters import assign_add as assign_add
from .parameters import assign_sub as assign_sub
from .clipping import clip_by_norm as clip_by_norm
from .class_forms import Primitive as Primitive
from ..transforms.custom import stop_gradient as stop_gradient
from ..transforms.grad import grad as grad
from ..transforms.grad import value_and_grad as value_and_grad
from ..transforms.grad import GradOperation as GradOperation
from ..transforms.grad import get_grad as get_grad
from ..transforms.jacobians import vjp as vjp
from ..transforms.jacobians import jvp as jvp
from ..transforms.jacobians import jacrev as jacrev
from ..transforms.jacobians import jacfwd as jacfwd
from ..transforms.jacobians import hessian as hessian
from ..transforms.vmap import vmap as vmap
from ..functions.linalg.banded import solve_banded as solve_banded
from ..functions.linalg.eigenvalues import eigh as eigh
from ..functions.linalg.eigenvalues import eigvalsh as eigvalsh
from ..functions.linalg.factorisations import solve_triangular as solve_triangular
from ..functions.linalg.matrix_functions import expm as expm
from ..functions.linalg.matrix_functions import logm as logm
from ..functions.linalg.matrix_functions import sqrtm as sqrtm
from ..functions.linalg.matrix_functions import solve_sylvester as solve_sylvester
from ..functions.linalg.triangular_factors import lu as lu
from ..functions.linalg.triangular_factors import lu_factor as lu_factor
from ..functions.linalg.triangular_factors import lu_solve as lu_solve
from ..functions.linalg.triangular_factors import cho_factor as cho_factor
from ..functions.linalg.triangular_factors import cho_solve as cho_solve
from ..functions.elementwise.special_functions import erf as erf
from ..functions.elementwise.special_functions import erfc as erfc
from ..functions.elementwise.special_functions import gammaln as gammaln
from ..functions.elementwise.special_functions import digamma as digamma
from ..functions.elementwise.special_functions import expit as expit
from ..functions.elementwise.special_functions import logit as logit
from ..functions.elementwise.gamma_functions import polygamma as polygamma
from ..functions.elementwise.gamma_functions import multigammaln as multigammaln
from ..functions.elementwise.gamma_functions import factorial as factorial
from ..functions.elementwise.gamma_functions import comb as comb

lgamma = gammaln

class Add(Primitive): ...
class Sub(Primitive): ...
class Mul(Primitive): ...
class Div(Primitive): ...
class RealDiv(Primitive): ...
class FloorDiv(Primitive): ...
class FloorMod(Primitive): ...
class Mod(Primitive): ...
class Pow(Primitive): ...
class TruncateDiv(Primitive): ...
class TruncateMod(Primitive): ...
class Exp(Primitive): ...
class Expm1(Primitive): ...
class Log(Primitive): ...
class Log1p(Primitive): ...
class Sqrt(Primitive): ...
class Rsqrt(Primitive): ...
class Square(Primitive): ...
class Reciprocal(Primitive): ...
class Inv(Primitive): ...
class Abs(Primitive): ...
class Neg(Primitive): ...
class Sign(Primitive): ...
class Floor(Primitive): ...
class Ceil(Primitive): ...
class Round(Primitive): ...
class Trunc(Primitive): ...
class Sin(Primitive): ...
class Cos(Primitive): ...
class Tan(Primitive): ...
class Asin(Primitive): ...
class ACos(Primitive): ...
class Atan(Primitive): ...
class Atan2(Primitive): ...
class Sinh(Primitive): ...
class Cosh(Primitive): ...
class Tanh(Primitive): ...
class Asinh(Primitive): ...
class Acosh(Primitive): ...
class Atanh(Primitive): ...
class Erf(Primitive): ...
class Erfc(Primitive): ...
class Lgamma(Primitive): ...
class Digamma(Primitive): ...
class Maximum(Primitive): ...
class Minimum(Primitive): ...
class Hypot(Primitive): ...
class Xlogy(Primitive): ...
class Lerp(Primitive): ...
class Addcmul(Primitive): ...
class Addcdiv(Primitive): ...
class AddN(Primitive): ...
class Equal(Primitive): ...
class NotEqual(Primitive): ...
class Less(Primitive): ...
class LessEqual(Primitive): ...
class Greater(Primitive): ...
class GreaterEqual(Primitive): ...
class LogicalAnd(Primitive): ...
class LogicalOr(Primitive): ...
class LogicalXor(Primitive): ...
class LogicalNot(Primitive): ...
class BitwiseAnd(Primitive): ...
class BitwiseOr(Primitive): ...
class BitwiseXor(Primitive): ...
class IsNan(Primitive): ...
class IsInf(Primitive): ...
class IsFinite(Primitive): ...
class Select(Primitive): ...
class MaskedFill(Primitive): ...
class MaskedSelect(Primitive): ...
class Cast(Primitive): ...
class ReLU(Primitive): ...
class ReLU6(Primitive): ...
class SeLU(Primitive): ...
class SiLU(Primitive): ...
class Sigmoid(Primitive): ...
class LogSigmoid(Primitive): ...
class HSwish(Primitive): ...
class HSigmoid(Primitive): ...
class Mish(Primitive): ...
class Softplus(Primitive): ...
class Softsign(Primitive): ...
class PReLU(Primitive): ...
class Reshape(Primitive): ...
class Transpose(Primitive): ...
class ExpandDims(Primitive): ...
class Tile(Primitive): ...
class Shape(Primitive): ...
class Rank(Primitive): ...
class Size(Primitive): ...
class GatherD(Primitive): ...
class GatherNd(Primitive): ...
class ScatterNd(Primitive): ...
class TensorScatterUpdate(Primitive): ...
class TensorScatterAdd(Primitive): ...
class TensorScatterSub(Primitive): ...
class Slice(Primitive): ...
class Unique(Primitive): ...
class Zeros(Primitive): ...
class Ones(Primitive): ...
class ZerosLike(Primitive): ...
class OnesLike(Primitive): ...
class Fill(Primitive): ...
class Eye(Primitive): ...
class LinSpace(Primitive): ...
class Trace(Primitive): ...
class Assign(Primitive): ...
class AssignAdd(Primitive): ...
class AssignSub(Primitive): ...
class Complex(Primitive): ...
class Real(Primitive): ...
class Imag(Primitive): ...
class Conj(Primitive): ...
class Angle(Primitive): ...
class ComplexAbs(Primitive): ...
class Polar(Primitive): ...
class MatMul(Primitive): ...
class BatchMatMul(Primitive): ...
class BiasAdd(Primitive): ...
class SquaredDifference(Primitive): ...
class L2Loss(Primitive): ...
class L2Normalize(Primitive): ...
class Identity(Primitive): ...
class WhileLoop(Primitive): ...
class ForiLoop(Primitive): ...
class Scan(Primitive): ...
class Softmax(Primitive): ...
class LogSoftmax(Primitive): ...
class GeLU(Primitive): ...
class Elu(Primitive): ...
class HShrink(Primitive): ...
class SoftShrink(Primitive): ...
class Dropout(Primitive): ...
class ReduceSum(Primitive): ...
class ReduceMean(Primitive): ...
class ReduceMax(Primitive): ...
class ReduceMin(Primitive): ...
class ReduceProd(Primitive): ...
class ReduceAll(Primitive): ...
class ReduceAny(Primitive): ...
class Argmax(Primitive): ...
class Argmin(Primitive): ...
class ArgMaxWithValue(Primitive): ...
class ArgMinWithValue(Primitive): ...
class CumSum(Primitive): ...
class CumProd(Primitive): ...
class Flatten(Primitive): ...
class Squeeze(Primitive): ...
class BroadcastTo(Primitive): ...
class Concat(Primitive): ...
class Stack(Primitive): ...
class Unstack(Primitive): ...
class Split(Primitive): ...
class ReverseV2(Primitive): ...
class Meshgrid(Primitive): ...
class Tril(Primitive): ...
class Triu(Primitive): ...
class Pad(Primitive): ...
class Gather(Primitive): ...
class OneHot(Primitive): ...
class StridedSlice(Primitive): ...
class Sort(Primitive): ...
class TopK(Primitive): ...
class Range(Primitive): ...
