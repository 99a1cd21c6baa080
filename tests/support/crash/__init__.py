"""What the proofs of tests/crash are made of."""
