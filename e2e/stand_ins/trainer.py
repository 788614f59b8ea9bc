"""Stands in for an image that starts sshd: with the key of the TrainJob as host key, and no configuration."""

import os
from pathlib import Path

Path("/run/sshd").mkdir(parents=True, exist_ok=True)
options = ["StrictModes=no", "PidFile=none", "LogLevel=FATAL"]
command = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-h", "/root/.ssh/id_rsa"]
os.execv(command[0], [*command, *(word for option in options for word in ("-o", option))])
