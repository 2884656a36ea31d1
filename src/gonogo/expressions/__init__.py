"""Expressions and templates: what they read, and their values.

`analyse` reads text and evaluates nothing; `sandbox` evaluates JavaScript in a locked-down child process;
`template` renders Liquid. Which names an expression is given, and what its value means, is left to the
callers.
"""
