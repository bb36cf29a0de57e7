"""A PostgreSQL-native job queue for jobs that matter."""
