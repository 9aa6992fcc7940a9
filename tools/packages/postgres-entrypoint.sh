#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What PostgreSQL's image does before its command, with Debian's programs: in an empty data directory it makes a
# cluster with the password of its file, and runs the scripts of /docker-entrypoint-initdb.d without a network.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # shellcheck disable=SC2086 - options are several words
  initdb --username=postgres --pwfile="$POSTGRES_PASSWORD_FILE" ${POSTGRES_INITDB_ARGS:-}
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
  PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE") PGUSER=postgres
  export PGPASSWORD PGUSER
  pg_ctl --wait --options="-c listen_addresses=''" start
  for script in /docker-entrypoint-initdb.d/*; do "$script"; done
  pg_ctl --wait --mode=fast stop
  unset PGPASSWORD PGUSER
fi
exec "$@"
