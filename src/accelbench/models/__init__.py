"""Models as data: specs, builders, inputs and analytic cost."""
