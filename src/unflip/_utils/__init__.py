"""Validation, types, files, frames, threads, progress: what every package may import."""
