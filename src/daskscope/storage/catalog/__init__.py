"""Lists that pages show: clusters, computations, errors, reports, and their history."""
