"""The shared words, protocols, the column registry, errors. Imports nothing of ours, nothing heavy."""
