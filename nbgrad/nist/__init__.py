"""The main job: NIST's certified nonlinear regressions, fitted with nbgrad's Jacobian.

In: the data file in this folder. Out: a table, JSON or a picture. Called by `python -m nbgrad`. datasets.py reads the
numbers, models.py holds the models as plain NumPy functions, fit.py fits them, jacobian.py compares and times
Jacobians, report.py writes the table and the JSON, plot.py draws. It uses nbgrad as any user would, through its public
names.
"""
