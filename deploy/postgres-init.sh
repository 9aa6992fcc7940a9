#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two databases and four roles. Run once, by the image of PostgreSQL, in an empty data directory.
#
#   ledger_owner  makes and upgrades the ledger's tables (`reticent init`), and nothing else
#   ledger        reads and writes rows; owns no table, so it can drop no trigger and change no column
#   vault_owner   loads tables
#   vault         reads them; the server serves as this role
set -eu
secrets=${SECRETS:-/run/secrets}
password() { cat "$secrets/$1"; }
psql --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
  --set ledger_owner="$(password ledger_owner)" --set ledger="$(password ledger)" \
  --set vault_owner="$(password vault_owner)" --set vault="$(password vault)" <<'SQL'
CREATE ROLE ledger_owner LOGIN PASSWORD :'ledger_owner';
CREATE ROLE ledger LOGIN PASSWORD :'ledger';
CREATE ROLE vault_owner LOGIN PASSWORD :'vault_owner';
CREATE ROLE vault LOGIN PASSWORD :'vault';
CREATE DATABASE ledger OWNER ledger_owner;
CREATE DATABASE vault OWNER vault_owner;
REVOKE ALL ON DATABASE ledger FROM PUBLIC;
REVOKE ALL ON DATABASE vault FROM PUBLIC;
GRANT CONNECT ON DATABASE ledger TO ledger;
GRANT CONNECT ON DATABASE vault TO vault;
\connect ledger
ALTER SCHEMA public OWNER TO ledger_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO ledger;
ALTER DEFAULT PRIVILEGES FOR ROLE ledger_owner IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ledger;
\connect vault
ALTER SCHEMA public OWNER TO vault_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO vault;
ALTER DEFAULT PRIVILEGES FOR ROLE vault_owner IN SCHEMA public GRANT SELECT ON TABLES TO vault;
SQL
