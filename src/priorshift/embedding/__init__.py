"""Mean embeddings of P, U and T: their Gram matrix, the influence of every row, and the ways to compute them."""
