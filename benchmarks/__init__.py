"""What serving costs, measured: `python -m benchmarks http|startup|engine`. Loopback only, Linux only."""
