"""What stands in for heads that are gone, without training. One file is one way, besides the contract and its parts."""
