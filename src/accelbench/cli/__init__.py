"""One module a command: parses, calls one function of a room, prints."""
