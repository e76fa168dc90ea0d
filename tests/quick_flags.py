"""XLA's flags of `make test`: compiling takes a third of the time, running a little longer."""

import importlib.metadata

KNOWN = importlib.metadata.version("jaxlib").startswith("0.10.")  # others may not know these flags, and end at once
QUICK = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0" if KNOWN else ""
