"""Sessions and set-up of other agents, found where they keep them and taken over."""
