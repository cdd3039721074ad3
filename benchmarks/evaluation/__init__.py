"""The experiments of the OSDI 2016 paper's evaluation, run again on the machine that is there.

`python -m benchmarks.evaluation` measures, simulates what the machine cannot hold, and writes
`docs/evaluation.md` with its pictures.
"""
