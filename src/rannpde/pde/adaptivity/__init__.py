"""The adaptive loop SOLVE → ESTIMATE → MARK → REFINE, behind a small protocol that discretisations implement."""
