"""From graphs to numbers: programs, buffers, threads, and the native entry point."""
