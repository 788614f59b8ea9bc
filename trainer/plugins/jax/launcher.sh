# What follows the first blank line is the program; what comes before it stays out of the pods.
#
# The rank of a node is known only as text in an environment variable, not as a number to count with, and Kubernetes
# starts one process for each container. So this stands before the command of the user. It uses nothing that only some
# shells have: dash, busybox and bash run it.
#
# Every process has a supervisor, a subshell that knows how its process ended. The shell can wait for one process at a
# time only, and waits for the supervisors in their order. So a supervisor whose process fails tells those before it to
# stop (SIGUSR1), the shell comes to it, finds its exit code, and signals those behind it. The shell notices each failed
# process at once, and nothing polls. A supervisor that got the signal exits with 138, as if the signal had ended it;
# such codes are consequences, so any other one counts before them.
#
# A process that has to stop gets SIGTERM, and SIGKILL after five seconds, because JAX catches SIGTERM and goes on until
# the next checkpoint, to which it needs its peers. They log errors about what they have lost, so the last line of the
# log says which process was the first. When SIGTERM comes from outside, nobody is killed: then it is Kubernetes that
# waits, as long as the pod allows.

# Starts $1 JAX processes with $2 devices each. The other words are their command.
processes=$1 devices=$2 node=$JAX_PROCESS_ID
shift 2

await() { # sets code to the exit code of $1, however often signals interrupt the waiting
  interrupted=
  wait "$1" 2>/dev/null
  code=$?
  while [ -n "$interrupted" ]; do
    interrupted=
    wait "$1" 2>/dev/null
    again=$?
    [ "$again" -eq 127 ] || code=$again
  done
}

end() { # tells the process of this supervisor to end, and makes it if it gives way to the failure of another
  stopping=1
  [ -n "$child" ] || return 0
  kill -TERM "$child" 2>/dev/null
  [ -n "$yielding" ] && [ -z "$timer" ] || return 0
  { sleep 5; kill -KILL "$child"; } >/dev/null 2>&1 &
  timer=$!
}

supervise() {
  JAX_PROCESS_ID=$((node * processes + number))
  if [ "$devices" -gt 0 ]; then
    JAX_LOCAL_DEVICE_IDS=$((number * devices))
    while [ "${JAX_LOCAL_DEVICE_IDS##*,}" -lt $((number * devices + devices - 1)) ]; do
      JAX_LOCAL_DEVICE_IDS=$JAX_LOCAL_DEVICE_IDS,$((${JAX_LOCAL_DEVICE_IDS##*,} + 1))
    done
    export JAX_LOCAL_DEVICE_IDS
  fi
  child= stopping= yielding= timer=
  trap 'interrupted=1; end' TERM
  trap 'interrupted=1; [ -n "$yielding" ] || { yielding=1; end; }' USR1
  exec "$@" &
  child=$!
  [ -z "$stopping" ] || end
  await "$child"
  child=
  [ -z "$timer" ] || kill "$timer" 2>/dev/null
  [ -z "$yielding" ] || exit 138
  [ "$code" -eq 0 ] || [ -n "$stopping" ] || [ -z "$pids" ] || kill -USR1 $pids 2>/dev/null
  exit "$code"
}

stop() {
  interrupted=1 stopping=1
  [ -z "$pids" ] || kill -TERM $pids 2>/dev/null
}

pids= stopping= number=0 result=0 culprit=
trap stop TERM INT HUP QUIT
while [ "$number" -lt "$processes" ] && [ -z "$stopping" ]; do
  supervise "$@" &
  pids="$pids $!"
  number=$((number + 1))
done
[ -z "$stopping" ] || stop
number=$((node * processes - 1))
for pid in $pids; do
  await "$pid"
  pids=${pids#" $pid"}
  number=$((number + 1))
  [ "$code" -ne 0 ] || continue
  [ "$result" -ne 0 ] || [ -n "$stopping" ] || [ -z "$pids" ] || kill -USR1 $pids 2>/dev/null
  case $result in 0 | 138) result=$code culprit=$number ;; esac
done
[ "$result" -eq 0 ] || [ -n "$stopping" ] || echo "$0: JAX process $culprit failed with exit code $result" >&2
exit "$result"
