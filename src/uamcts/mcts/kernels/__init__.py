"""GPU kernels: a search per thread. They give the numbers of the phases they replace."""
