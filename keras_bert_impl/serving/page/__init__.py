"""The playground's page, its parts for pages that stand alone, and what it asks the server."""
