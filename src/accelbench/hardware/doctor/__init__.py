"""Doctor: checks of the installation, with the command that repairs each problem.

An installation is examined by files, package metadata and disposable processes, never by importing
an engine. The locations of the store and the cache are arguments.
"""
