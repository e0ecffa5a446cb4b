"""Networks that no class of transformers is: each module is imported if one is built."""
