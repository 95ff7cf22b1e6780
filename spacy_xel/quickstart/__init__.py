"""From somebody's own table to an installed pipeline."""
