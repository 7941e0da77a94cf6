"""The benchmark: baseline, DFlash and DFlash 2 under the same conditions."""
