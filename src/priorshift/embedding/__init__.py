"""Mean embeddings of P, U and T: their Gram matrix, the influence of every row, and the ways to compute them."""

P, U, T = 0, 1, 2  # the order of the samples everywhere
