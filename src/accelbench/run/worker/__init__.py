"""The worker: what runs in the process in which a model is measured."""
