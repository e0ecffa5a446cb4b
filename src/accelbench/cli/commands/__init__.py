"""Commands: one module a command, which parses, calls one service and prints."""
