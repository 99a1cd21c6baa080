"""The vendors' own SDKs as judges of what is sent to them.

They are no dependency of ours: `make oracles` installs them beside the environment.
"""
