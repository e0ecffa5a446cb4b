"""What it means: comparison, scaling, regression. Pure functions over tables."""
