"""Checkpoints of training frameworks without a line in the script: a module for each of them.

Each sees to three things where the script has no resume logic of its own: that the training begins from its newest
complete checkpoint, that checkpoints are written as the arguments of the framework say, and that it saves and ends with
a code of its own when the pod is about to go. A script that says itself where it resumes from is left alone.
"""
