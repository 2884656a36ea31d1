"""The built-in step types, one file each, see `table.py`. What starts with an underscore is shared by them."""
