"""Grafana dashboards, written as tables of panels."""
