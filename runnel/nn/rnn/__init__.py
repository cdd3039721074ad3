"""Recurrent networks: cells applied along sequences."""
