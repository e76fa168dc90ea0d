"""What the package asks of the machine: JAX's set-up, compiled programs on disk, devices, files written whole."""
