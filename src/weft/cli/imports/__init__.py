"""What other agents have, taken over from the command line."""
