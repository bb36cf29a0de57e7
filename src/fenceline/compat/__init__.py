"""Other queues' words for Fenceline's verbs, so that a program can move in file by file.

One package per queue: `celery/`. They translate to the public names and keep no state of their own; nothing else
imports them.
"""
