"""Entries in layers, so that what a snapshot has frozen stays as it is while states go on."""
