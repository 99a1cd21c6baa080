"""Capacity model of many hosts on one Postgres: what it must carry, and how long an append waits.

`assumptions` holds every number with its source, `capacity` multiplies them, `commit_queue` plays
the commits of all hosts against one database, event by event, and `calibration` measures the two
times that the queue starts from on a real Postgres.
"""
