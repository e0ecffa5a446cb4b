"""Estimates: figures of what was not measured, from measured neighbours to rules."""
