#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pins the images that the compose file names by version to the digests that those versions have today: lines
# for .env, such as POSTGRES_IMAGE=postgres@sha256:…. Look at them, then:  deploy/pin-images.sh >> .env
# Needs docker and the registries; run it again to take a newer version, after changing the compose file.
set -eu
file=$(dirname "$0")/../docker-compose.yml
sed -n 's/.*\${\([A-Z]*_IMAGE\):-\([^}]*\)}.*/\1 \2/p' "$file" | sort -u | while read -r variable image; do
  case $image in
    reticent:*) continue ;; # built here
  esac
  docker pull --quiet "$image" > /dev/null
  digest=$(docker image inspect --format '{{index .RepoDigests 0}}' "$image")
  case $digest in
    *@sha256:*) echo "$variable=$digest" ;;
    *)
      echo "pin-images: $image has no digest" >&2
      exit 1
      ;;
  esac
done
