#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reticent-as.sh init|curator COMMAND…: a command of `reticent` on one machine without containers, as the user
# `reticent`, with the roles and the passwords for it: `init` owns the tables, `curator` loads and sets budgets.
#   reticent-as.sh init init
#   reticent-as.sh curator dataset load houses /etc/reticent/tables/houses.csv --schema …
set -eu
case ${1:-} in
  init) ledger=ledger_owner vault=vault_owner ;;
  curator) ledger=ledger vault=vault_owner ;;
  *)
    echo "reticent-as: say init or curator, then a command of reticent" >&2
    exit 2
    ;;
esac
container=$1
shift
etc=${RETICENT_ETC:-/etc/reticent}
cd /
exec setpriv --reuid reticent --regid reticent --clear-groups --no-new-privs \
  env -i PATH="$PATH" HOME=/var/lib/reticent LANG="${LANG:-C.UTF-8}" TERM="${TERM:-dumb}" \
  RETICENT_DATABASE_URL="postgresql://$ledger@localhost/ledger" \
  RETICENT_VAULT_URL="postgresql://$vault@localhost/vault" \
  RETICENT_SECRETS_FILE=/var/lib/reticent/secrets.json \
  RETICENT_ANCHOR_FILE="$etc/anchors/ledger" \
  PGPASSFILE="$etc/secrets/$container/passwords" \
  /opt/reticent/bin/reticent "$@"
