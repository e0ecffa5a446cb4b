"""Chosen configurations beside each other: a sentence, a picture and a table."""
