"""Everything that talks to PostgreSQL on behalf of the layers above."""
