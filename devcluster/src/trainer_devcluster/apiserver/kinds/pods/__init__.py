"""Pods and their templates."""
