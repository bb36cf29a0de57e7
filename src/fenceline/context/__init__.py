"""What a handler knows and can do while it runs, wherever it runs: in a worker, alone in a process, in a runner."""
