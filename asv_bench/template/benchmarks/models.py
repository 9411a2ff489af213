"""Our functions: plain NumPy, each with one real number as its result. Import your own here instead."""

import numpy as np


def growth(parameters, days):
    """A logistic curve: the number of cells."""
    limit, rate, middle = parameters[0], parameters[1], parameters[2]
    return limit / (1.0 + np.exp(-rate * (days - middle)))


def misfit(parameters, days, counts):
    """The squared error of the curve, relative to the counts."""
    return np.sum((growth(parameters, days) / counts - 1.0) ** 2)


def roughness(heights, measured, weight):
    """A surface near measured heights whose second differences are small."""
    bent = heights[2:] - 2.0 * heights[1:-1] + heights[:-2]
    return np.sum((heights - measured) ** 2) + weight * np.sum(bent**2)
