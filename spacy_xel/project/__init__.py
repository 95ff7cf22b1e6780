"""Recipes of pipelines: the .cfg files here, which configs/ points to."""
