"""The shared words, protocols, columns and errors. Imports nothing of ours, nothing heavy."""
