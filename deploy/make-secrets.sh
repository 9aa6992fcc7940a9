#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes what the compose file mounts: random passwords, each in the folders of those containers alone that
# need it, readable by the user of that container only; and the folders for anchors, tables and keys.
# Run it as root, once; what is there is kept. Another folder than the one of this file, and other users and
# hosts than those of the compose file:
#   POSTGRES_UID=… RETICENT_UID=… PROMETHEUS_UID=… DB_HOST=localhost make-secrets.sh DIRECTORY
set -eu
umask 077
here=${1:-$(dirname "$0")}
secrets=$here/secrets

# Users inside the containers: of PostgreSQL's Alpine image, of this project's, of Prometheus' ("nobody").
postgres=${POSTGRES_UID:-70}
reticent=${RETICENT_UID:-10001}
nobody=${PROMETHEUS_UID:-65534}
host=${DB_HOST:-db}

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

folder() { # NAME USER: a folder that is the user's own
  mkdir -p "$1"
  chown "$2" "$1"
  chmod 0700 "$1"
}

file() { # NAME USER: what is on standard input, readable by the user alone
  cat > "$1"
  chown "$2" "$1"
  chmod 0400 "$1"
}

if [ -e "$secrets/db/postgres" ]; then
  echo "$secrets is there already, and is kept." >&2
else
  folder "$secrets" 0
  chmod 0711 "$secrets"
  folder "$secrets/db" "$postgres"
  for role in postgres ledger_owner ledger vault_owner vault; do
    random | file "$secrets/db/$role" "$postgres"
  done
  for who in init:ledger_owner:vault_owner server:ledger:vault curator:ledger:vault_owner; do
    name=${who%%:*} roles=${who#*:}
    folder "$secrets/$name" "$reticent"
    for role in ${roles%:*} ${roles#*:}; do
      database=${role%_owner}
      echo "$host:5432:$database:$role:$(cat "$secrets/db/$role")"
    done | file "$secrets/$name/passwords" "$reticent"
  done
  folder "$secrets/prometheus" "$nobody"
fi
# What containers' users read of this repository, whatever the umask of the checkout was.
for name in Caddyfile prometheus.yml alerts.yml; do
  if [ -e "$here/$name" ]; then chmod 0644 "$here/$name"; fi
done
if [ -e "$here/postgres-init.sh" ]; then chmod 0755 "$here/postgres-init.sh"; fi
for name in anchors tables parquet; do
  folder "$here/$name" "$reticent"
done
folder "$here/dask" "$reticent"
