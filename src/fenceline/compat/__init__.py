"""The APIs of other queues on top of Fenceline, so that a program can move file by file.

One package per queue: `celery/`. They only translate to Fenceline's public names, and nothing else imports them.
"""
