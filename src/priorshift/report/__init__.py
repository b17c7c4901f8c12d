"""One page that shows an answer: what it is, whether to believe it, and what to do next (the extra ``report``)."""
