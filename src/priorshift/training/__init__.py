"""The network behind DRPU and nnPU: how it is trained, and what is left of it."""
