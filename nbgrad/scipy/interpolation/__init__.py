"""The classes and functions of `scipy.interpolate` for recorded values."""
