"""The built-in step types, one file each (`table.py` lists them). Underscored modules are what they share."""
