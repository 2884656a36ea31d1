"""The nouns of the YAML, one Struct each. What they mean is left to `compile`."""
