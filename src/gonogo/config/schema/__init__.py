"""The nouns of the YAML, one pydantic class each. What a file says, not yet what it means: that is `compile`."""
