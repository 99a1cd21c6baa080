"""The folders of sessions on this host: found, or made of what another host has saved."""
