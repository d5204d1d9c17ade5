"""Physical removal of heads: slicing weights, adapting modules, verifying the result, counting costs."""
