"""A local page for people who type no commands (the extra ``app``)."""
