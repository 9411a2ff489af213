"""`nbgrad.numpy.fft` in place of `numpy.fft`.

In: NumPy's names. Out: the functions of functions/analysis/fft_functions.py. Called by users.
"""

from ..functions.analysis.fft_functions import fft as fft
from ..functions.analysis.fft_functions import fft2 as fft2
from ..functions.analysis.fft_functions import fftfreq as fftfreq
from ..functions.analysis.fft_functions import fftn as fftn
from ..functions.analysis.fft_functions import fftshift as fftshift
from ..functions.analysis.fft_functions import hfft as hfft
from ..functions.analysis.fft_functions import ifft as ifft
from ..functions.analysis.fft_functions import ifft2 as ifft2
from ..functions.analysis.fft_functions import ifftn as ifftn
from ..functions.analysis.fft_functions import ifftshift as ifftshift
from ..functions.analysis.fft_functions import ihfft as ihfft
from ..functions.analysis.fft_functions import irfft as irfft
from ..functions.analysis.fft_functions import irfft2 as irfft2
from ..functions.analysis.fft_functions import irfftn as irfftn
from ..functions.analysis.fft_functions import rfft as rfft
from ..functions.analysis.fft_functions import rfft2 as rfft2
from ..functions.analysis.fft_functions import rfftfreq as rfftfreq
from ..functions.analysis.fft_functions import rfftn as rfftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
