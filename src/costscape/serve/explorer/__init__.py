"""The explorer: a page at ``/`` of a service, which asks the same paths as every other client."""
