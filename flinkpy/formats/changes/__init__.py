"""Messages that tell changes: those of Debezium and Canal, and upserts of topics with keys."""
