"""Values of rows as columns and back: Arrow types for declared ones, inferred types, and conversions that never change a value."""
