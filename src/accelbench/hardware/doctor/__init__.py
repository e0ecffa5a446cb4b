"""What works here, what is missing, what clashes, and the command that repairs it.

An installation is examined by files, package metadata and throw-away processes, never by importing
an engine. Places of the store and the cache are handed in.
"""
