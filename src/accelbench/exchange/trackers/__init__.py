"""Results as runs of experiment trackers: MLflow, Weights & Biases, TensorBoard."""
