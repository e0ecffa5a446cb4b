"""WHAT is measured: model specs as data, builders, inputs, analytic cost."""
