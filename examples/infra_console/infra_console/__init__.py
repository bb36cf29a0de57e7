"""An infrastructure console: specs are planned, deployed and destroyed by runners elsewhere."""
