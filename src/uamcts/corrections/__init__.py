"""What an agent corrects about a simulator: the facts it has seen."""
