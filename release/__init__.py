"""What must hold before a version is published: ``make release-check``."""
