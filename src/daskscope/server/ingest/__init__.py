"""From a recorder's request to rows in the database."""
