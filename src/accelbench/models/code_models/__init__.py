"""Models that an owner's own code makes: a module, a factory of one, or any callable."""
