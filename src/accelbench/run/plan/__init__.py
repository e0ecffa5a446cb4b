"""Plans of a run: from a request to an ordered list of cases, before anything is started."""
