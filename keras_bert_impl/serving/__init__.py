"""Exported models: signatures, export, verification, use."""
