"""The package and the machine: JAX's setup, the cache of compiled programs, devices, and atomic file writes."""
