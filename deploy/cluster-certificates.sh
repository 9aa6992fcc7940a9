#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Certificates of a Dask cluster: sh cluster-certificates.sh FOLDER NAME...
# In FOLDER, for each NAME (scheduler, worker, server): NAME.pem and NAME.key, signed by an authority of the
# cluster's own, ca.pem. Who holds one can read the rows: the authority's key is for this folder's owner only.
# Dask checks that a certificate is of this authority, and not which host it names.
set -eu
umask 077
folder=$1
shift
mkdir -p "$folder"
cd "$folder"
curve=ec_paramgen_curve:prime256v1
if [ ! -f ca.key ]; then
    openssl req -x509 -newkey ec -pkeyopt $curve -nodes -days 3650 -subj /CN=reticent-cluster \
        -keyout ca.key -out ca.pem
fi
for name; do
    openssl req -newkey ec -pkeyopt $curve -nodes -subj "/CN=$name" -keyout "$name.key" -out "$name.csr"
    openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 825 -out "$name.pem" 2>/dev/null
    rm "$name.csr"
done
