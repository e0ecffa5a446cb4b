"""The report: all that is known of some results in one file, as HTML and as Markdown."""
