"""Documents that commands show, and their forms for files."""
