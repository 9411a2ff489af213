"""Statistics, polynomials, Fourier transforms, sampled data."""
