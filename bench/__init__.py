"""Measures gonogo against the budgets of docs/project/budgets.md: `make bench`. No part of the package."""
