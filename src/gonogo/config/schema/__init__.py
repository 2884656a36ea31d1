"""The nouns of the YAML, one pydantic class each. What they mean is left to `compile`."""
