"""XLA's flags of `make test`: compiling takes a third of the time, running a little longer."""

import importlib.metadata

KNOWN = importlib.metadata.version("jaxlib").startswith("0.10.")  # others may not know these flags, and end at once
FLAGS = ("use_fusion_emitters=false", "parallel_codegen_split_count=1")  # modules in one piece: there is one thread
QUICK = " ".join(["--xla_backend_optimization_level=0", *(f"--xla_cpu_{flag}" for flag in FLAGS)]) if KNOWN else ""
