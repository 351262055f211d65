"""Between columns and messages: lines of files that tell changes."""
