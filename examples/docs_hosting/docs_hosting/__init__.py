"""Hosting of documentation: builds come in, editions point to them."""
