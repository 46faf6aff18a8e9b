"""Complete examples that run from the command line; each is written to be read and copied."""
