"""The search: each phase a file with its formula, the loop in `search.py`, the public function in `api.py`."""
