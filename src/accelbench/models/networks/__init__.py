"""Networks that no class of transformers is: each module is imported where one is built."""
