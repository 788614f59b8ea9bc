# Installs Flux and its configuration in the volume that the container which trains has at the same place.
set -eu

config=/mnt/flux/config
mkdir -p "$config"/etc/curve "$config"/etc/flux/config "$config"/etc/flux/system/cron.d
mkdir -p "$config"/run/flux "$config"/var/lib/flux /mnt/flux/view /mnt/flux/software
printf '%s\n' "$hosts" > "$config"/etc/flux/system/hostlist
printf '%s\n' "$broker_toml" > "$config"/etc/flux/config/broker.toml

# Programs in the view are links to what Spack has installed in /opt/software, so both are needed.
for view in /opt/views/._view/*/; do
  if [ -d "$view" ]; then cp -Rf "$view". /mnt/flux/view/; fi
done
if [ -d /opt/software ]; then cp -Rf /opt/software/. /mnt/flux/software/; fi
touch /mnt/flux/flux-operator-done.txt
