"""Queries: what is asked, checked and completed by what is known of the model."""
