"""The verifiable instructions of IFEval (Zhou et al., arXiv 2311.07911), one checker each."""
