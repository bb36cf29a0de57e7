"""What Fenceline costs beside the same work done bare. Run by `make bench` or `python -m benchmarks --help`.

Every file with a `measure` function is one measurement; `__main__.MEASUREMENTS` lists them. Times are noisy on
any machine that does something else too, so both sides run in turn within one run and the ratio is what counts;
bytes of WAL are exact.
"""
