"""Arguments: lists, filters and names of the command line, checked."""
