"""Health checks over recorded completions: detectors of rewards that are flat, of exploits, of faults and of noise."""
