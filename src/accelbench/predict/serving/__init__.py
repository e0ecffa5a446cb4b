"""Predictions of served language models: operator tables, step times, continuous batching."""
