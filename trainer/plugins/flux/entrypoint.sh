# Starts the broker of this node. That of the first node has the command run on all of them, and ends with it.
set -eu

base=/mnt/flux
config=$base/config
view=$base/view
child= stopped=
trap 'touch "$base"/flux-operator-complete.txt' EXIT
# The first process of a container hands no signal on unless it says so.
trap 'stopped=1; if [ -n "$child" ]; then kill -TERM "$child" || true; fi' TERM

# One word stands for all words of a command that needs no quotes.
if [ $# -eq 1 ]; then
  set -f
  set -- $1
  set +f
fi

cp -Rf "$base"/software/. /opt/software/
# Behind those of the image: its Python is the one that trains. That of the view comes with links that lead nowhere.
export PATH="$PATH:$view/bin"
for library in "$view"/lib/python3.*; do
  if [ -x "$view/bin/${library##*/}" ]; then
    rm -f "$view"/bin/python "$view"/bin/python3
    ln -sfn "$view/bin/${library##*/}" "$view"/lib/python
    ln -sfn "$view/bin/${library##*/}" "$view"/lib/python3
    export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$library/site-packages"
  fi
done
export FLUX_RC_EXTRA=$view/etc/flux/rc1.d
if ! command -v flux > /dev/null; then
  echo "flux is neither in this image nor in that of FLUX_VIEW_IMAGE" >&2
  exit 127
fi

# For people in a shell of this container: `. /mnt/flux/flux-view.sh`, then `flux proxy $fluxsocket bash`.
printf 'export %s=%q\n' PATH "$PATH" PYTHONPATH "${PYTHONPATH:-}" \
  LD_LIBRARY_PATH "${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$view/lib" fluxsocket "local://$config/run/flux/local" \
  > "$base"/flux-view.sh
printf 'flux module %s\n' 'remove sched-simple' 'load sched-fluxion-resource' 'load sched-fluxion-qmanager' \
  > "$base"/load-fluxion.sh

# Flux refuses a certificate that others may read.
install -m 600 /curve/curve.cert "$config"/etc/curve/curve.cert
hosts=$(cat "$config"/etc/flux/system/hostlist)
flux R encode --hosts="$hosts" $resources > "$config"/etc/flux/system/R
export STATE_DIR=$config/var/lib/flux FLUX_OUTPUT_DIR=/tmp/fluxout
mkdir -p "$STATE_DIR" "$FLUX_OUTPUT_DIR"

broker=(
  flux broker "--config-path=$config/etc/flux/config"
  "-Scron.directory=$config/etc/flux/system/cron.d" -Stbon.fanout=256
  "-Srundir=$config/run/flux" "-Sstatedir=$STATE_DIR" "-Slocal-uri=local://$config/run/flux/local"
  -Slog-stderr-level=4 -Slog-stderr-mode=local # warnings, such as of brokers that have not come
)

supervise() {
  local status
  if [ -n "$stopped" ]; then return 143; fi
  "$@" &
  child=$!
  while true; do
    status=0
    wait "$child" || status=$?
    if ! kill -0 "$child" 2> /dev/null; then break; fi
  done
  child=
  return "$status"
}

if [ "$(uname -n)" = "$lead" ]; then
  if [ $# -eq 0 ]; then
    echo "no command: the broker waits for yours until it is shut down"
    supervise "${broker[@]}" -Sbroker.rc2_none
    exit
  fi
  # The brokers of the other nodes end with the command, and do not come back when this container starts again.
  met=$base/brokers-have-met
  if [ -e "$met" ] && [[ $hosts != *'[0]' ]]; then
    echo "the command has run, and the brokers of the other nodes have ended: all pods must start again" >&2
    exit 1
  fi
  supervise "${broker[@]}" bash -c 'touch "$0"; exec "$@"' "$met" flux run $options "$@"
else
  while [ -z "$stopped" ]; do
    if supervise "${broker[@]}"; then exit 0; fi
    echo "the broker has ended; it starts again in 15 s"
    sleep 15 &
    if [ -z "$stopped" ]; then wait $! || true; fi
  done
  exit 143
fi
