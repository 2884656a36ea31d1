"""The wire formats of model servers: OpenAI-compatible chat completions and Anthropic messages.

Pure: it makes the bytes of a request and reads the bytes of an answer. Opening connections, timers, trying
again and choosing another target belong to those who call it.
"""
