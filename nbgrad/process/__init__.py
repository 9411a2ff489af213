"""Parts that concern the whole Python process: locks, forks, interrupts, the collector, the layout of objects."""
