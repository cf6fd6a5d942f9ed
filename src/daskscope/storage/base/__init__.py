"""Databases, stores of files, encryption, and one transaction over all of them."""
