"""Secrets stay hidden in what is shown, logged and archived."""
