#!/bin/sh
# Two databases with two roles: the ledger's role cannot read the vault. Run once, by the image of
# PostgreSQL, in an empty data directory.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
  --set ledger_password="$LEDGER_PASSWORD" --set vault_password="$VAULT_PASSWORD" <<'SQL'
CREATE ROLE ledger LOGIN PASSWORD :'ledger_password';
CREATE ROLE vault LOGIN PASSWORD :'vault_password';
CREATE DATABASE ledger OWNER ledger;
CREATE DATABASE vault OWNER vault;
REVOKE CONNECT ON DATABASE ledger FROM PUBLIC;
REVOKE CONNECT ON DATABASE vault FROM PUBLIC;
SQL
