"""What an agent corrects about a simulator: facts, parameters, residuals; who judges them; what is still doubtful."""
