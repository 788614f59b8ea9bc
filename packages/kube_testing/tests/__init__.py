"""Tests of the test aids."""
