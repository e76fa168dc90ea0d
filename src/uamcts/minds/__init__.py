"""What `uamcts.Agent` has inside: one mind for domains, as the paper describes it, and one for people's simulators."""
