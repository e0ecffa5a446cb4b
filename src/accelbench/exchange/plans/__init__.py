"""Plan files: what is measured, and how, as a document of YAML, TOML or JSON."""
