"""The small program between the kubelet and what it runs: one process per pod sandbox, two per container.

It uses the standard library only and is started with `python -I -S`, so that nothing installed can break it and it is
up in a few milliseconds. It gets one line of JSON (`spec`) on its standard input, answers with lines of JSON
(`reports`) on its standard output, and lives no longer than its standard input: when the kubelet goes, however it goes,
the pipe closes and everything that the shim has started is killed.

A container is two processes. The *monitor* stays outside, writes the log file and takes the kubelet's signals; its
child, the *init*, builds the file system and is PID 1 of the container's PID namespace, so that the kernel kills all
that is left of the container when it ends. Like `tini`, init passes signals on and reaps orphans: unlike a process that
is itself PID 1, a program that does not handle SIGTERM dies of it.
"""
