"""The readers of a session: the hub that its events go to, and the subscriptions that take them."""
