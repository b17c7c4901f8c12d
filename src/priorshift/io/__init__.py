"""What users bring: tables, labels, which rows are one observation, scale, settings; and the source made of them."""
