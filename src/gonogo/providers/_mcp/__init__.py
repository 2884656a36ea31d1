"""Servers that speak the Model Context Protocol: reached, asked for their tools, and made to use one."""
