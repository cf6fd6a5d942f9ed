"""From a request to a route's function: routing, identity, parameters, errors."""
