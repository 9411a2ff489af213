def replacement_of_distribution(value): return value
