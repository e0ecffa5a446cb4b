"""What works here, what is missing, what clashes, and the command that mends it.

Asking an installation is asking a machine: by files, by package metadata and by
throw-away processes, never by importing an engine. So the checks live with the
detectors; what other rooms know (where the store and the cache are) is handed in.
"""
